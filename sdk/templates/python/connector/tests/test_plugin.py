import json
import unittest

from hotcell_plugin import Request, Unavailable, accepted, http
from hotcell_plugin.testing import surroundings
from plugin import Config, answer, send

CONFIG = Config("https://api.example.org/messages")


class Send(unittest.TestCase):
    def test_the_answer_of_the_server_is_the_answer(self):
        def server(method, url, headers, body):
            self.assertEqual((method, url, json.loads(body)), ("POST", CONFIG.url, {"text": "hello"}))
            return http.Response(200, {}, b'{"id": 7}')

        with surroundings(http=server):
            self.assertEqual(send(Request({"text": "hello"}, CONFIG)), {"id": 7})

    def test_an_answer_may_come_later(self):
        def server(method, url, headers, body):
            self.assertEqual(json.loads(body)["callback"], {"url": "https://hotcell.example.org", "session": "s1"})
            return http.Response(202, {}, b"")

        with surroundings(http=server):
            self.assertEqual(send(Request({}, CONFIG, "https://hotcell.example.org", "s1")), accepted())
        self.assertEqual(answer(Request({}, CONFIG), {"answer": 1}), 1)

    def test_a_server_that_fails_is_unavailable(self):
        with surroundings(http=lambda *_: http.Response(503, {}, b"")), self.assertRaises(Unavailable):
            send(Request({}, CONFIG))


if __name__ == "__main__":
    unittest.main()
