"""What several questions of one page need alike is read once."""

from controlplane.history.together import asked_together, once


def counting():
    asked = []

    def read():
        asked.append(None)
        return len(asked)

    return read


def test_of_questions_that_are_asked_together_the_first_answer_holds():
    read = counting()
    with asked_together():
        assert [once("mark", read), once("mark", read)] == [1, 1]


def test_each_key_has_an_answer_of_its_own_and_none_is_one_too():
    with asked_together():
        assert once("mark", lambda: None) is None
        assert once("mark", lambda: "later") is None
        assert once("gaps", lambda: "later") == "later"


def test_what_was_known_ends_with_the_page():
    read = counting()
    assert [once("mark", read), once("mark", read)] == [1, 2]
    for answer in (3, 4):
        with asked_together():
            assert once("mark", read) == answer
