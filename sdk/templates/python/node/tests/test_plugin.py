import unittest

from plugin import Fields, Inputs, lookup


class Lookup(unittest.TestCase):
    def test_it_leaves_by_the_branch_that_fits(self):
        fields = Fields(table={"no": "Norway"})
        self.assertEqual(lookup(fields, Inputs(key="no")).branch, "found")
        self.assertEqual(lookup(fields, Inputs(key="xx")).branch, "missing")


if __name__ == "__main__":
    unittest.main()
