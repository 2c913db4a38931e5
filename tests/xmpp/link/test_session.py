import asyncio

from bridge.xmpp.link import session

LIMIT_SECONDS = 30.0


class Server:
    def __init__(self, handled: int = 0) -> None:
        self.told: list[int] = []
        self._news = asyncio.Event()
        self.management = session.StreamManagement(self._tell, "bot@chat.example/x", "id", handled)

    def _tell(self, handled: int) -> None:
        self.told.append(handled)
        self._news.set()

    def send(self, count: int) -> None:
        for _ in range(count):
            self.management.count()

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
        server.management.answer_soon()
    server.send(2)
    await server.hears()
    assert server.told == [7 + 3 + 2]
    assert loop.time() - asked >= session.DELAY_SECONDS
    server.management.answer_soon()
    await server.hears()
    assert server.told == [12, 12]


async def test_an_answer_that_is_owed_is_given_at_once_before_the_server_keeps_too_much() -> None:
    server = Server()
    server.management.answer_soon()
    server.send(session.MAX_UNANSWERED - 1)
    assert server.told == []
    server.send(1)
    assert server.told == [session.MAX_UNANSWERED]
    server.send(session.MAX_UNANSWERED)  # nobody has asked
    assert server.told == [session.MAX_UNANSWERED]
    server.management.stop()


async def test_an_answer_that_is_given_at_once_is_not_given_again() -> None:
    server = Server()
    server.send(2)
    server.management.answer_soon()
    server.management.answer()
    server.management.answer_soon()
    await server.hears()
    await server.hears()
    assert server.told == [2, 2]


async def test_once_stopped_nothing_more_is_answered() -> None:
    stopped, other = Server(), Server()
    stopped.management.answer_soon()
    stopped.management.stop()
    other.management.answer_soon()  # whose turn comes later
    await other.hears()
    assert stopped.told == []
