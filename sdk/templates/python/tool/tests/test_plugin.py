import unittest

from hotcell_plugin import InvalidInput
from hotcell_plugin.testing import surroundings
from plugin import count_words


class CountWords(unittest.TestCase):
    def test_words_are_counted_once_if_asked(self):
        with surroundings() as around:
            self.assertEqual(count_words("a b a"), {"words": 3})
            self.assertEqual(count_words("a b a", distinct=True), {"words": 2})
        self.assertEqual(around.notes, [("debug", "3 words"), ("debug", "3 words")])

    def test_a_text_without_words_is_refused(self):
        with self.assertRaises(InvalidInput):
            count_words(" ")


if __name__ == "__main__":
    unittest.main()
