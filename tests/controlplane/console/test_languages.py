"""The console in English and in Simplified Chinese: nothing is missing, nothing stands bare, programs hear English."""

from __future__ import annotations

import gettext
import re
from html import unescape
from time import thread_time

import pytest
from django.http import HttpResponse
from django.test import Client
from django.utils import translation

from controlplane import catalogues
from controlplane.console import catalogue, extraction
from controlplane.console.load_words import in_page_words
from controlplane.console.templatetags.console import count, duration, refused_words
from controlplane.console.wording import PLACE, fitting, worded
from controlplane.lake.ddl import ALLOWED

from .conftest import text_of

CHINESE = "zh-hans"
CJK = re.compile(r"[\u4e00-\u9fff]")
FILES = catalogue.catalogues()

NAMES = {
    "ACL",
    "Sluice",
    "UTC",
    "PDF",
    "CSV",
    "JSON",
    "MiB",
    "GiB",
    "ms",
    "s",
    "h",
    "B",
    "i",
    "H",
    "REST",
    "CLI",
    "FOCUS",
    "ca",
    "pem",
}
"""Words that are the same in every language: names, units, formats."""
LITERAL = {"landing.html": ["curl -H"], "keys.html": ["curl -H"], "key_table.html": ["slc_"]}
"""Templates with text that a shell reads."""
DJANGO = re.compile(r"{%.*?%}|{{.*?}}|{#.*?#}", re.DOTALL)
OPAQUE = re.compile(
    r"{%\s*blocktranslate\b.*?{%\s*endblocktranslate\s*%}|{%\s*comment\b.*?{%\s*endcomment\s*%}"
    r"|<code\b.*?</code>|{%\s*block body_class\s*%}.*?{%\s*endblock\s*%}|<!doctype[^>]*>",
    re.DOTALL | re.IGNORECASE,
)
SAID_BY = re.compile(r'\b(?:aria-label|data-label|placeholder|title|alt|data-announce)="([^"]*)"')
TEMPLATES = sorted(extraction.TEMPLATES.rglob("*.html"))


@pytest.fixture(autouse=True)
def afterwards_english():
    """A request leaves its language on the thread: what other tests make without a request is English."""
    translation.activate("en")
    yield
    translation.activate("en")


@pytest.fixture
def chinese():
    with translation.override(CHINESE):
        yield


def bare_text(source: str) -> list[str]:
    """What a person would read in English whatever the language: text, and attributes that are read out."""
    found = DJANGO.sub("\x00", OPAQUE.sub("\x00", source))
    said = SAID_BY.findall(found)
    said += re.split(r"<[^>]*>", found)
    words = [
        [word for word in re.findall(r"[A-Za-z]+", unescape(each.replace("\x00", " "))) if word not in NAMES]
        for each in said
    ]
    return [" ".join(each) for each in words if each]


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.parents[1].name)
def test_every_text_is_translated(path):
    found = catalogue.read(path)
    assert catalogue.missing(found) == [], "run `manage.py words` and translate what it names"


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.parents[1].name)
def test_a_catalogue_holds_nothing_that_is_not_shown(path):
    assert catalogue.superfluous(catalogue.read(path)) == []


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.parents[1].name)
def test_values_and_markup_are_the_same_on_both_sides(path):
    assert catalogue.unlike(catalogue.read(path)) == []


def test_texts_are_found_in_a_checkout_whatever_the_folder_above_it_is_called(tmp_path, monkeypatch):
    here = {text.singular for text in extraction.of_python()}
    (tmp_path / "pipeline").mkdir()
    elsewhere = tmp_path / "pipeline" / "management"
    elsewhere.symlink_to(extraction.ROOT)
    monkeypatch.setattr(extraction, "ROOT", elsewhere)
    assert {text.singular for text in extraction.of_python()} == here


def test_there_is_a_catalogue_for_each_language_but_english(settings):
    wanted = {translation.to_locale(code) for code, _ in settings.LANGUAGES if code != "en"}
    assert {path.parents[1].name for path in FILES} == wanted


def test_what_is_unlike_is_found():
    found = catalogue.Catalog(locale="zh_Hans")
    found.add("%(name)s of <b>{all}</b>", "%(nam)s <b>{all}</b>")
    found.add("no topic {name}", "没有主题 {name}")
    found.add(("one %(name)s", "many %(name)s"), ("%(name)s",))
    assert catalogue.unlike(found) == ["%(name)s of <b>{all}</b>"]


def test_a_fuzzy_translation_counts_as_missing():
    found = catalogue.read(FILES[0])
    found["Topics"].flags.add("fuzzy")
    assert catalogue.missing(found) == ["Topics"]


@pytest.mark.parametrize("path", TEMPLATES, ids=lambda path: path.name)
def test_no_text_of_a_template_stands_bare(path):
    source = path.read_text()
    for literal in LITERAL.get(path.name, []):
        assert literal in source
        source = re.sub(re.escape(literal) + r"[^\n<]*", "", source)
    assert bare_text(source) == []


def test_bare_text_is_found_wherever_it_stands():
    assert bare_text("<p>Hello {{ name }}</p>") == ["Hello"]
    assert bare_text('<a aria-label="Close it" href="/somewhere">{% translate "Close" %}</a>') == ["Close it"]
    assert bare_text('<td data-label="{% translate "Size" %}">{{ size }} GiB</td>') == []
    assert bare_text("{% if a %}on{% else %}{% translate 'off' %}{% endif %}") == ["on"]


def test_catalogues_are_compiled_at_first_use_and_when_they_change(tmp_path):
    source, into = tmp_path / "locale", tmp_path / "made"
    file = source / "zh_Hans" / "LC_MESSAGES" / "django.po"
    file.parent.mkdir(parents=True)
    header = 'msgid ""\nmsgstr "Content-Type: text/plain; charset=utf-8\\n"\n\n'
    file.write_text(header + 'msgid "Topics"\nmsgstr "主题"\n')

    def said() -> str:
        made = catalogues.compiled(source, into)
        with (made / "zh_Hans/LC_MESSAGES/django.mo").open("rb") as compiled:
            return gettext.GNUTranslations(compiled).gettext("Topics")

    assert said() == "主题"
    file.write_text(header + 'msgid "Topics"\nmsgstr "话题"\n')
    assert said() == "话题"


def test_where_nothing_can_be_written_catalogues_are_compiled_all_the_same(tmp_path):
    occupied = tmp_path / "file"
    occupied.write_text("")
    made = catalogues.compiled(catalogue.LOCALE, occupied)
    assert (made / "zh_Hans/LC_MESSAGES/django.mo").exists()


def test_a_catalogue_that_cannot_be_read_stops_whoever_starts(tmp_path):
    file = tmp_path / "locale" / "zh_Hans" / "LC_MESSAGES" / "django.po"
    file.parent.mkdir(parents=True)
    file.write_text('msgid "Topics"\nnonsense\n')
    with pytest.raises(Exception, match="misformatted"):
        catalogues.compiled(tmp_path / "locale", tmp_path / "made")


@pytest.mark.django_db
@pytest.mark.parametrize(
    ("header", "language"),
    [("zh-CN,zh;q=0.9,en;q=0.8", CHINESE), ("zh-TW", CHINESE), ("en-GB", "en"), ("fr", "en"), ("", "en")],
)
def test_a_page_is_in_the_language_that_the_browser_asks_for(header, language):
    page = Client().get("/sign-in", headers={"accept-language": header})
    assert f'<html lang="{language}"' in page.content.decode()
    assert page.headers["Content-Language"] == language
    assert ("登录" in text_of(page)) == (language == CHINESE)
    assert "Accept-Language" in page.headers["Vary"]


@pytest.mark.django_db
def test_the_switch_outdoes_the_browser_and_is_remembered():
    browser = Client(headers={"accept-language": "en"})
    assert browser.post("/language", {"language": CHINESE, "next": "/sign-up"}).headers["Location"] == "/sign-up"
    assert "注册" in text_of(browser.get("/sign-up"))
    browser.post("/language", {"language": "en", "next": "/sign-up"})
    assert not CJK.search(text_of(browser.get("/sign-up")).replace("简体中文", ""))


@pytest.mark.django_db
@pytest.mark.parametrize(
    ("sent", "address"),
    [
        ({"language": "tlh", "next": "/sign-in"}, "/sign-in"),
        ({"language": CHINESE, "next": "https://evil.example"}, "/"),
    ],
)
def test_the_switch_takes_known_languages_and_leads_to_own_pages(sent, address):
    answer = Client().post("/language", sent)
    assert answer.headers["Location"] == address
    assert ("language" in answer.cookies) == (sent["language"] == CHINESE)


@pytest.mark.django_db
def test_programs_hear_english_whatever_they_ask_for(alice):
    asked = Client(headers={"accept-language": "zh-CN"})
    Client().get("/sign-in", headers={"accept-language": "zh-CN"})  # on the same thread, just before
    for answer in (asked.get("/api/v1/nothing"), asked.get("/api/v1/instances")):
        assert answer.status_code in (401, 404)
        assert not CJK.search(answer.content.decode())
        assert "Content-Language" not in answer.headers
    asked.cookies["language"] = CHINESE
    refused = asked.post(
        "/api/v1/instances", {}, content_type="application/json", headers={"authorization": f"Bearer {alice.key}"}
    )
    assert refused.status_code == 400
    assert not CJK.search(refused.content.decode())


def test_sentences_of_services_are_known_again_by_their_patterns(chinese):
    assert worded("no topic orders") == "没有主题 orders"
    assert worded("the topic has 6; partitions cannot be taken away") == "主题有 6；分区不能减少"
    assert worded("Topic running is ready.") == "主题 running 已就绪。", "a tenant's name stays as it is"
    assert worded("the instance is creating, not running") == "实例状态为创建中，不是运行中"
    assert worded("what nobody has ever said") == "what nobody has ever said"
    assert worded(None) is None


@pytest.mark.parametrize(
    "said",
    [
        "nothing to load: the table has all that the topic has; nothing to copy after version 3",
        "copied up to version 0: 1 file, 90,245 bytes; loaded by runs before",
        "5,000 rows, 90 bytes of keys and values, 1 commit, 2.5 s; topic id rJ0f; copied up to version 7: 2 files, 9 bytes",
        "5 rows, 9 bytes of keys and values, 3 commits, 2.5 s; topic id rJ0f; nothing to copy after version 7",
        "the bucket events-1 does not exist",
        "the bucket refuses the key (InvalidAccessKeyId)",
        "the bucket is not in this region (PermanentRedirect)",
        "the bucket is not in this region",
        "the bucket refuses lake/orders/load-1/part-0.parquet (EntityTooLarge)",
        "the store of the bucket fails (SlowDown)",
        "the store of the bucket does not answer (EndpointConnectionError)",
        "looking whether the bucket takes the table",
        "version 7 of 9: 1 file",
        "version 7 of 9: 3 of 12 files",
        "version 7 of 9 copied",
        "there is no Delta table to copy",
        "part-1.parquet was removed while the table was copied: start again",
        "Kafka does not say what new_topic is: Timed out.",
        "looking at table and topic: 12 s, 1 of 2 tasks",
        "Spark does not run: no Java",
        "the table has the schema {} (given), and another one is asked for: leave schema out, or load into another table",
        "the schema cannot be read: Unsupported",
        "'nonsense' in the schema is no type that is known here; allowed are " + ALLOWED,
        "another program changed the table while this load wrote to it",
        "another load wrote to the table at the same time: commit 3 is not of this one",
        "expired while they were read: offsets 0 to 7 of partition 0; offsets 3 to 4 of partition 1. Nothing was written.",
        (
            "no longer in the topic: offsets 0 to 7 of partition 0; offsets 3 to 4 of partition 1. They expired, or were "
            "deleted. skip_expired goes on behind them, and notes in the table what is missing."
        ),
        (
            "the table was loaded from the topic with the id a, and the topic of this name has the id b: it was deleted and "
            "made again. new_topic goes on with the new one, from its beginning; the rows of the old one stay, under its id."
        ),
        "none of the 5 values looked at is a JSON object with members: schema raw loads them",
        (
            "the table is a table whose log does not say what was loaded into it: name what to load with offsets, which takes "
            "the place of what the table has of it"
        ),
        "stopped: the instance is isolated, not running",
        "the operators of this service allow no such place for loads any more",
        "1 of 2 rows are staged: another run of the report removed them",
        "no version 3 of the plan 'gold' is on record",
    ],
)
def test_whatever_a_program_says_of_a_run_or_a_bill_is_in_the_language_of_the_page(chinese, said):
    shown = worded(in_page_words(said))
    assert CJK.search(shown)
    assert re.findall(r"(?:\b[a-z_]+\b[ ;,:]+){2}\b[a-z_]+\b", shown) == [], "also where two sentences are joined"


@pytest.mark.parametrize(
    ("pattern", "text", "values"),
    [
        ("no {what}", "no topic", {"what": "topic"}),
        ("no {what}", "none topic", None),
        ("{a} of {b} used", "1 of 2 of 3 used", {"a": "1", "b": "2 of 3"}),
        ("{a} of {b} used", "1 of 2", None),
        ("{a} and {a}", "x and x", {"a": "x"}),
        ("{a} and {a}", "x and y", None),
        ("{first}{rest}, all", "abc, all", {"first": "", "rest": "abc"}),
    ],
)
def test_a_pattern_gives_the_values_of_what_it_has_made(pattern, text, values):
    assert fitting(PLACE.split(pattern), text) == values


def test_a_long_text_that_nearly_fits_costs_nothing_to_speak_of(chinese):
    text = "a: " * 20_000
    began = thread_time()
    assert worded(text) == text
    assert thread_time() - began < 1  # of computing: others may have the core meanwhile


def test_in_english_sentences_are_themselves():
    assert worded("no topic orders") == "no topic orders"


def test_plurals_and_durations_follow_the_language(chinese):
    assert [count(number, "partition,partitions") for number in (1, 2)] == ["1 个分区", "2 个分区"]
    assert duration(90_000) == "1 天 1 小时"
    with translation.override("en"):
        assert [count(number, "partition,partitions") for number in (1, 2)] == ["1 partition", "2 partitions"]
        assert duration(90_000) == "1 day 1 h"


@pytest.mark.django_db
def test_forms_and_refusals_are_in_the_language_of_the_page(at_alice, instance):
    at_alice.client.cookies["language"] = CHINESE
    page = at_alice.get(f"instances/{instance.id}/new-topic")
    said = text_of(page)
    assert "分区" in said
    assert "一个消费组可同时消费的消费者数量" in said
    refused = text_of(at_alice.post(f"instances/{instance.id}/new-topic", {"name": "a b"}))
    assert "主题名称只能包含字母、数字" in refused
    assert "必填" in refused, "what Django says itself"


def test_reasons_of_refused_connections_are_in_the_language_of_the_page(chinese):
    assert refused_words("whitelist") == "地址不在任何白名单中"
    assert refused_words("what is newer") == "what is newer"


@pytest.mark.django_db
@pytest.mark.parametrize(
    "path",
    [
        *("instances", "instances/{id}", "instances/{id}/topics", "instances/{id}/quota", "members", "keys", "bills"),
        *("budgets", "new-budget", "instances/{id}/settings", "instances/{id}/delete", "instances/{id}/connections"),
        *(
            "instances/{id}/bill",
            "instances/{id}/bill/topics",
            "instances/{id}/bill/users",
            "instances/{id}/bill/what-if?ask=1",
            "instances/{id}/prepaid",
            "instances/{id}/elastic-bandwidth",
        ),
    ],
)
def test_pages_hold_no_english_sentence(at_alice, instance, path):
    at_alice.client.cookies["language"] = CHINESE
    page = at_alice.get(path.format(id=instance.id))
    said = text_of(HttpResponse(re.sub(r"<(code|pre)\b.*?</\1>", " ", page.content.decode(), flags=re.DOTALL)))
    assert re.findall(r"(?:\b[a-z]+\b ){4,}", said) == []


@pytest.mark.parametrize("template", TEMPLATES, ids=lambda path: path.name)
def test_no_class_is_a_word_of_a_language(template):
    """A style is of the English state: with a translated one it is nobody's."""
    for attribute in re.findall(r'class="(?:{%.*?%}|{{.*?}}|[^"])*"', template.read_text()):
        assert not re.search(r"\|worded|{%\s*(?:block)?translate|_\(", attribute), attribute
