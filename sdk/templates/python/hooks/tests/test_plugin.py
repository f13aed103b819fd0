import unittest

from hotcell_plugin.testing import surroundings
from plugin import check


class Check(unittest.TestCase):
    def test_one_tool_is_refused(self):
        with surroundings(config={"refuse": "shell"}):
            self.assertEqual(check({"tool": "shell"}).kind, "refuse")
            self.assertEqual(check({"tool": "search"}).kind, "proceed")


if __name__ == "__main__":
    unittest.main()
