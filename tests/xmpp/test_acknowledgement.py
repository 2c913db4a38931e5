import asyncio

from bridge.xmpp.acknowledgement import DELAY_SECONDS, MAX_UNANSWERED, Acknowledgements
from bridge.xmpp.management import Management

LIMIT_SECONDS = 10.0


class Server:
    """What is told, and when the next of it is."""

    def __init__(self, handled: int = 0) -> None:
        self.told: list[int] = []
        self._news = asyncio.Event()
        self.acknowledgements = Acknowledgements(Management("id", handled), self._tell)

    def _tell(self, handled: int) -> None:
        self.told.append(handled)
        self._news.set()

    def send(self, count: int) -> None:
        for _ in range(count):
            self.acknowledgements.count()

    async def hears(self) -> None:
        async with asyncio.timeout(LIMIT_SECONDS):
            await self._news.wait()
        self._news.clear()


async def test_all_questions_of_a_moment_get_one_answer_with_the_count_as_it_then_is() -> None:
    server = Server(handled=7)
    loop = asyncio.get_running_loop()
    asked = loop.time()
    for _ in range(3):
        server.send(1)
        server.acknowledgements.owe()
    server.send(2)
    await server.hears()
    assert server.told == [7 + 3 + 2]
    assert loop.time() - asked >= DELAY_SECONDS
    server.acknowledgements.owe()
    await server.hears()
    assert server.told == [12, 12]


async def test_an_answer_that_is_owed_is_given_at_once_before_the_server_keeps_too_much() -> None:
    server = Server()
    server.acknowledgements.owe()
    server.send(MAX_UNANSWERED - 1)
    assert server.told == []
    server.send(1)
    assert server.told == [MAX_UNANSWERED]
    server.send(MAX_UNANSWERED)  # nobody has asked
    assert server.told == [MAX_UNANSWERED]
    server.acknowledgements.stop()


async def test_at_the_end_the_server_is_told_what_it_does_not_know_and_nothing_else() -> None:
    server = Server()
    server.acknowledgements.settle()
    server.send(2)
    server.acknowledgements.settle()
    server.acknowledgements.settle()
    assert server.told == [2]


async def test_once_stopped_nothing_more_is_answered() -> None:
    stopped, other = Server(), Server()
    stopped.acknowledgements.owe()
    stopped.acknowledgements.stop()
    other.acknowledgements.owe()  # whose turn comes later
    await other.hears()
    assert stopped.told == []
