"""Doubts about a public answer: it may tell of a failure, be taken back, or be another's. Pure."""

import re
from bisect import bisect
from collections import Counter
from collections.abc import Mapping
from itertools import islice
from typing import cast

from bridge.text import iso, name_of, searchable
from bridge.wire.speech import (
    ANSWER_SECONDS,
    COMMAND_CHARACTERS,
    has_arguments,
    is_command,
    is_named,
    is_put_to,
)
from bridge.xmpp.checks import conduct
from bridge.xmpp.checks.answering import LATE_MS, differences
from bridge.xmpp.checks.evidence import MAX_ALIKE, MESSAGES, Evidence, list_of, words_of
from bridge.xmpp.checks.exchanges import plain
from bridge.xmpp.checks.questions import asks_of, ids_of
from bridge.xmpp.model.journal import Record

LIST = 2
"""An answer with so many commands lists them."""

WORDS = 2
"""An answer of so many words is not given to each command, as `OK` is."""

LONG = 10
"""Two people say the same so many characters by chance only seldom."""

_DENIAL = (
    "no|nothing|0|without|never|keine?|ohne|pas d|aucune|zéro|sans|sin|sem|nenhum|nessun|bez"
    "|нет|без|geen|ingen|inga|没有"
)
_FAILURE = re.compile(
    rf"(\b(?:{_DENIAL})[ '\u2019]?(?:any |an |de )?)?"
    r"(\b(?:error|exception|traceback|failed|failure|denied|refused|forbidden|went wrong"
    r"|timed out|unavailable|unreachable|unable to|https? ?(?:error |status )?[45]\d\d"
    r"|sorry|try again|out of (?:service|order)|bad gateway|crashed|not (?:found|recogni[sz]ed"
    r"|supported|implemented|allowed|permitted|authori[sz]ed)|(?:unknown|invalid|no such) \w+"
    r"|(?:(?:not|\w+n['\u2019]t) have|have no|needs?|requires?|lacks?|missing|insufficient)"
    r" (?!no )[\w -]{,30}(?:permission|privilege)s?|rate[ -]?limit(?:s|ed|ing)?"
    r"|(?:do|did|can|could)(?: not|not|n['\u2019]t) (?:understand|recogni[sz]e|know \w+ command)"
    r"|(?:only|not an?|must be an?) (?:\w+ )?(?:admin|owner|moderator|member|operator)s?"
    r"|not (?:enabled|available|connected|logged in|ready)|too (?:many|few) \w+|time-?out|down for"
    r"|(?:is|am|are|['\u2019][ms]) (?:down|offline|busy)|disabled|restricted|overloaded|expired"
    r"|exceeded|no response|(?:login|argument|registration) required|missing argument|bad request"
    r"|connection (?:lost|reset|closed)|please (?:register|log in)|aborted|out of memory|overflow"
    r"|verweigert|keine berechtigung|nur admins|zeitüberschreitung|refusé|denegado|запрещ\w+"
    r"|what do you mean|panicked|segmentation fault|core dumped|nil value"
    r"|unbekannt\w*|nicht verstanden|inconnue?|pas compris|desconocid\w|no entiendo|desconhecid\w"
    r"|sconosciut\w|onbekend\w*|nieznan\w+|neznám\w+|okän[dt]|bilinmeyen|неизвестн\w+|не пон\w+"
    r"|fehler|fehlgeschlagen|nicht (?:erreichbar|gefunden|möglich)|erreur|échec|échoué|fallo|falló"
    r"|erro|errore|falha|falhou|fallito|fout|mislukt|błąd|chyba|hata|ошибка|сбой|не удалось"
    r"|помилка|грешка|greška|fejl|feil|virhe|hiba|viga|kļūda|klaida|eroare|σφάλμα|lỗi|gagal|galat"
    r"|خطأ|שגיאה)\b"
    r"|错误|錯誤|失败|失敗|未知|权限|超时|エラー|不明|タイムアウト|오류|실패|알 수 없"
    r"|^(?:❌|⛔|🚫|💥|⚠\ufe0f?)(?=\s*\w))"
    r"(?!\W{0,2}(?:(?:0|none|keine|нет)(?!\w)|なし|없))"
)
"""Matches the words of an answer that may be about what went wrong in the program, as people write
them in many languages, or a sign: what denies them, and the words."""

_UNFILLED = re.compile(
    r"\bundefined\b|\bNaN\b|(?<=[:=] )nan\b|^(?:null|None|nil)\W*$|\[object \w+\]"
    r"|<[\w. ]+(?: at 0x|\[\w+\]>)|\$?\{\w+\}|\{[{%]|\$\([a-z]|\[0m"
    r"|^[\[({]\s*(?:[\[{]\s*)?['\"][^'\"]*['\"]\s*[:,\])}]"
    r"|(?<!\d)%(?:\(\w+\))?[sd]\b|^b['\"]|\\[ux][0-9a-f]{2}"
    r"|\w\.(?:c|cpp|cs|erl|exs?|go|java|js|kt|lua|php|pl|py|rb|rs|sh|ts)(?::|\W+(?:on )?line )\d"
    r"|&(?:amp|lt|gt|quot|nbsp|#x?[0-9a-f]+);"
    r"|\b[A-Z]\w*[a-z](?:Error|Exception)\b|(?i:<!(?:--|doctype)|<html\b|</[a-z]\w*>|<\w+ [\w-]+=)"
    r"|\ufffd|[ÂÃÐÑ](?:[\x80-\xbf]|\\u\{[89AB])|â(?:€|\\u\{[89])"
)
"""Matches what programs write in place of a value that is not there, of a name that they should
have replaced, or of text that was encoded once too often or decoded as Latin-1. It also matches
what is meant for programs: a data structure, markup, or a place in their source."""

_BEGUN = re.compile(
    r"(?:\.\.\.|…|,|⏳|⌛|^[^:\n]+:)\s*\Z"
    r"|\A\W*(?:(?:just |wait )?(?:one|a) (?:moment|second|minute)|please wait|hold on|working on it"
    r"|thinking|(?:einen )?moment|bitte warten|un (?:instant|momento)|patientez|espere|aguarde"
    r"|attendere|подожд\w+|请稍\w+|お待ち\w+)(?:\W+\w+){,2}\W*\Z",
    re.IGNORECASE | re.MULTILINE,
)
"""Matches an answer after which more should come, as people write it in many languages."""


def doubt(
    evidence: Evidence, first: Mapping[str, object], last: Mapping[str, object]
) -> tuple[str, str]:
    """Return why a public answer may be none, as the end of a sentence, and what to do about it.

    `last` is the newest correction of the answer that came `first`, or that itself.
    """
    if first.get("replaces"):  # it was said before: what is said after the question comes first
        hint = "Let it answer in a message of its own, and correct only that (XEP-0308)."
        return ", by changing what it had said before: people may overlook that.", hint
    if (back := _taken_back(evidence)) is not None:
        by = getattr(back.event, "moderated_by", None) or back.sender
        hint = "People whose clients know of that see nothing of it (XEP-0424, XEP-0425)."
        return f", and {name_of(by)} took it back at {iso(back.at)}.", hint
    body, asked = str(last.get("body") or ""), evidence.past.heard
    if first.get("reactions") and not body and (other := _in_words(evidence)):
        return f", and {other} in words: is that all?", "Wait for more by xmppWait."
    if last is not first and not body.strip():
        return ", and then took the words out of it.", "Let it correct to words only (XEP-0308)."
    if tells_failure(last, asked.body if asked else ""):
        hint = "If not, these words say what failed, and its own log says more."
        return ": is that what it should say?", hint
    if hands_on(evidence, body):
        hint = "It seems to hand on what is said here. Say something else that it should answer."
        return ", which only repeats it: is that the answer?", hint
    if _BEGUN.search(str(evidence.answers[-1].get("body") or "")):
        return " and nothing since: is that all?", "Wait for more by xmppWait, and look again."
    if former := _to_else(evidence, body):
        return f", as it did to {former}: is that the answer?", "Does it look at what it is asked?"
    if other := _addressee(evidence, asked.body if asked else ""):
        hint = "Does it mix up who asked? Say it again while nobody else speaks."
        return f", {other}: is that for the bridge?", hint
    if (before := before_it(evidence, body)) is not None:
        detail = f", as if to {_words_and_sender(before)}, said before."
        return detail, "Say it again, with other words behind it."
    return "", ""


def unasked(evidence: Evidence, first: Mapping[str, object], *, is_late: bool) -> str:
    """Return how the first answer may have been said unasked, for a sentence; empty if not."""
    if conduct.on_beat(evidence):
        return "when it speaks by itself"
    speaks = conduct.is_unasked(evidence) or hands_on(evidence, str(first.get("body")))
    return "and speaks by itself, too" if is_late and speaks else ""


def with_words(answer: Mapping[str, object], count: int) -> str:
    """Return the words of the first of `count` answers, and if people see others, in a clause."""
    body, marked = answer.get("body"), cast("list[str]", answer.get("marked") or [])
    other = f" (people may see another text: {list_of(marked)})" if marked else ""
    more = f", the first of {count} messages," if count > 1 else ""
    return f" with {words_of(body)}{other}{more}" if body else ""


def hands_on(evidence: Evidence, body: str) -> bool:
    """Whether a message repeats what the bridge said last, as a relay does under its name."""
    words, said = evidence.past.heard.body.strip() if evidence.past.heard else "", body.rstrip()
    is_ours = is_named(evidence.status.nickname, said.removesuffix(words))
    is_echo = said == words and is_command(words)
    return words != "" and said.endswith(words) and (is_ours or is_echo)


def unless_to_another(evidence: Evidence, outcome: Record) -> str:
    """Return which others the occupant may have answered, for the end of a sentence.

    They are the occupants who spoke after the bridge. There are none if the occupant said more than
    others asked. An occupant who said the same as this one did not ask for it.
    """
    replies = [reply for reply in reversed(evidence.past.replies) if reply.is_public]
    reply = [*replies, outcome][0]
    asked = [
        other.sender
        for other in evidence.past.others
        if other.is_public
        and other.body not in {"", reply.body}
        and outcome.number < other.number < reply.number
    ]
    if not asked or len(replies) > len(asked):
        return ""
    names = list_of([*dict.fromkeys(asked)][:MAX_ALIKE])
    return f", unless that was to {names}, who spoke meanwhile"


def meanwhile(evidence: Evidence, outcome: Record) -> str:
    """Return a sentence on how another's question, answered at once, differs from the bridge's."""
    asks = [ask for ask in asks_of(evidence) if ask.asked.number > outcome.number and ask.what]
    prompt = [ask.asked for ask in asks if ask.seconds <= ANSWER_SECONDS and not ask.asked.is_own]
    return f" {differences(evidence, prompt[0], outcome)}" if prompt else ""


def aside(evidence: Evidence) -> str:
    """Return a sentence on what the occupant's account wrote to us outside the room, if it did."""
    if (milliseconds := evidence.aside_ms) is None:
        return ""
    when = f"{milliseconds:,.0f} ms later"
    return f" Its account wrote to the bridge's own address {when}: should that be in the room?"


def _taken_back(evidence: Evidence) -> Record | None:
    """Return the newest retraction, if all public answers were taken back (XEP-0424, XEP-0425)."""
    replies = [it for it in evidence.past.replies if it.is_public]
    acts = [it for it in (*replies, *evidence.past.others) if getattr(it.event, "retracts", None)]
    gone = {getattr(it.event, "retracts", None) for it in acts}
    is_gone = [it in acts or bool(ids_of(it) & gone) for it in replies]
    return acts[0] if acts and all(is_gone) else None


def _addressee(evidence: Evidence, asked: str) -> str:
    """Return to whom all public answers are put instead, by name or as replies; empty if none.

    It does not count if what the bridge `asked` names that other.
    """
    ours = ids_of(evidence.past.heard) if evidence.past.heard else set()
    replies = {it.number for it in evidence.past.replies}
    acts = [act for act in evidence.acts if act.number not in replies]
    known = {id_: act for act in acts for id_ in ids_of(act) - ours}
    others = {searchable(it.nickname): it.nickname for it in evidence.status.others}
    others.pop(searchable(evidence.nickname), None)
    names = [name for name in others if not is_named(name, searchable(asked))]

    def addressee(reply: Record) -> str:
        to, text = getattr(reply.event, "reply_to", None) or "", searchable(reply.body)
        named = [others[name] for name in names if is_named(name, text)]
        is_to = len(named) == 1 and is_put_to(searchable(named[0]), text)  # several are a list
        if to in known:
            return f"as a reply to {_words_and_sender(known[to])}"
        return f"to {name_of(named[0])}" if is_to else ""

    whom = [addressee(it) for it in evidence.past.replies]
    return whom[0] if whom and all(whom) else ""


def tells_failure(answer: Mapping[str, object], asked: str) -> bool:
    """Whether an answer to what the bridge asked, as in `Evidence.answers`, may be about a failure.

    Words of the question say nothing, nor does a name to be replaced beside a command: it is help.
    So is an answer with several commands.
    """
    body = str(answer.get("body") or "")[:COMMAND_CHARACTERS]
    commands = _commands_in(body)
    parts = _FAILURE.findall(body.casefold()) if len(commands) < LIST else []
    if not commands:
        parts += [("", it) for it in _UNFILLED.findall(body)]
    return any(not denied and words.casefold() not in asked.casefold() for denied, words in parts)


def _commands_in(body: str) -> set[str]:
    words = (word for word in body.split() if is_command(word))
    return {word for word in words if word[0] not in "%&" and "/" not in word[1:]}


def before_it(evidence: Evidence, answer: str) -> Record | None:
    """Return the command before the bridge's, if an answer has only the arguments of that.

    It may also be an older one of the same word, if the bridge's has arguments.
    """
    ours = evidence.past.heard
    if ours is None or has_arguments(plain(ours), answer):
        return None
    earlier = [act for act in reversed(evidence.acts) if act.number < ours.number]
    commands = [(act, plain(act)) for act in earlier if is_command(plain(act))]
    word, *arguments = plain(ours).split() or [""]
    older = [it for it in commands[1:] if arguments and it[1].split()[0] == word]
    answered = (act for act, text in [*commands[:1], *older] if has_arguments(text, answer))
    return next(answered, None)


def _to_else(evidence: Evidence, answer: str) -> str:
    """Return what else was answered in the same words before, for a sentence; empty if nothing.

    A list of commands, or one word, such as `OK`, may answer everything.
    """
    ours, is_short = evidence.past.heard, len(answer.split()) < WORDS
    if ours is None or is_short or len(_commands_in(answer)) >= LIST:
        return ""
    asks = [ask for ask in asks_of(evidence) if ask.what and ask.asked.number <= ours.number]
    same = [ask for ask in asks[:-1] if ask.answer and ask.answer.body == answer]
    is_known = asks and asks[-1].subject in {ask.subject for ask in same}
    return _words_and_sender(same[-1].asked) if same and not is_known else ""


def after_another(evidence: Evidence, body: object) -> str:
    """Return who had said the words of an answer before, for the end of a sentence.

    Anybody can do so: it is no doubt.
    """
    ours = evidence.past.heard
    before = (act for act in evidence.acts if ours and act.number < ours.number)
    said = (act for act in before if not (act.is_own or evidence.is_theirs(act)))
    who = next((act.sender for act in said if act.body == body and len(act.body) >= LONG), "")
    return f", which {name_of(who)} had said before" if who else ""


def _in_words(evidence: Evidence) -> str:
    """Return the same command of another, if it was answered in words, for a sentence."""
    ours, asks = evidence.past.heard, [ask for ask in asks_of(evidence) if ask.what]
    mine = {ask.subject for ask in asks if ours and ask.asked.number == ours.number}
    worded = [it for it in asks if it.subject in mine and it.answer and it.answer.body]
    return _words_and_sender(worded[-1].asked) if worded else ""


def _words_and_sender(act: Record) -> str:
    return f"{words_of(act.body)} of {name_of(act.sender)}"


def is_twice(evidence: Evidence, outcome: Record) -> bool:
    """Whether the occupant gave the same answer more often than others can have asked for it.

    Everything that others did since shortly before the bridge spoke counts as a question, and so
    does what the bridge says if it was still without an answer. That a bridge came or went does
    not, such as a former run of ours, in the store.
    """
    asks = [it for it in asks_of(evidence) if it.what]
    ours = {ask.what for ask in asks if ask.asked.number == outcome.number}
    late = [
        it for it in asks if it.what in ours and it.answer and it.answer.number > outcome.number
    ]
    waiting = {ask.asked.number for ask in late}
    bridges = {evidence.status.nickname, *evidence.bridges}
    asking = [
        record.number
        for record in reversed(evidence.past.others)
        if record.number > outcome.number
        or record.number in waiting
        or outcome.at - record.at <= LATE_MS / 1000
        if record.body or record.sender not in bridges
    ]
    times, replies = Counter[str](), worded(evidence)
    for reply in replies:
        times[reply.body] += 1
        if times[reply.body] > max(1, bisect(asking, reply.number)):
            soon = (it for it in replies if it.at - reply.at <= ANSWER_SECONDS)
            return _has_doubled([it.body for it in soon])
    return False


def _has_doubled(said: list[str]) -> bool:
    """Whether some messages in a row came again; of the first ones half is enough.

    A list may have equal lines, with others between them.
    """
    for size in range(1, len(said)):
        for first in range(len(said) - size):
            again = said[first + size : first + 2 * size]
            enough = size if first else (size + 1) // 2
            rest = said[first + 2 :]
            if size == 1 and rest[::2] != rest[1::2]:
                continue
            if len(again) >= enough and again == said[first : first + len(again)]:
                return True
    return False


def worded(evidence: Evidence) -> list[Record]:
    """Return the first `MESSAGES` public answers that have a body and correct no other message."""
    replies = (
        reply
        for reply in reversed(evidence.past.replies)
        if reply.is_public and reply.body and getattr(reply.event, "replaces", None) is None
    )
    return [*islice(replies, MESSAGES)]
