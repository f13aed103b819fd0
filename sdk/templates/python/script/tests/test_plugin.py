import unittest

from hotcell_plugin import InvalidInput
from hotcell_plugin.testing import surroundings
from plugin import greet


class Greet(unittest.TestCase):
    def test_the_person_in_the_state_is_greeted(self):
        with surroundings(state={"person": {"name": "Ada"}}):
            self.assertEqual(greet(), {"greeting": "Hello, Ada!"})

    def test_without_a_name_it_says_so(self):
        with surroundings(), self.assertRaises(InvalidInput):
            greet()


if __name__ == "__main__":
    unittest.main()
