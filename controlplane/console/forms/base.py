"""Fields that several forms share, and the way a service's refusal gets beside its field."""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING, Any, ClassVar
from uuid import uuid4

from django import forms
from django.core.validators import EmailValidator

from controlplane.console.advice import said, sentence
from controlplane.console.wording import is_english, worded
from controlplane.core.origin import was_refused
from controlplane.core.whitelist import whitelist_problems

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from uuid import UUID

    from controlplane.core.errors import FieldProblem, SluiceError


def _line(problem: FieldProblem) -> str:
    index = problem.field.removeprefix(".")
    return f"Line {int(index) + 1}: {problem.detail}" if index else sentence(problem.detail)


class ConsoleForm(forms.Form):
    """`refusals` says beside which field a code stands; what is in none of them stands above the form."""

    refusals: ClassVar[Mapping[str, str]] = {}

    def __init__(self, *args: Any, **options: Any) -> None:
        options.setdefault("label_suffix", "")
        super().__init__(*args, **options)
        for field in () if is_english() else self.fields.values():
            field.label, field.help_text = worded(field.label), worded(field.help_text)
            if isinstance(field, forms.ChoiceField):
                field.choices = in_words(field.choices)

    def refuse(self, error: SluiceError) -> None:
        """Put a service's refusal where the person can see what to mend."""
        was_refused(error)
        placed = False
        for problem in error.errors:
            name, _, index = problem.field.partition(".")
            name = self.refusals.get(name, name)
            if name in self.fields:
                line = f"{self.entry(name, int(index))}: " if index.isdigit() else ""
                self.add_error(name, line + (problem.detail if line else sentence(problem.detail)))
                placed = True
        if not placed:
            self.add_error(self.refusals.get(error.code), said(error))

    def entry(self, _name: str, index: int) -> str:
        """Which entry of a list is meant."""
        return f"Line {index + 1}"


class OnceField(forms.UUIDField):
    """The token of a form that makes something, another one on each page that is opened. What is no token counts as none."""

    widget = forms.HiddenInput

    def __init__(self) -> None:
        # Browsers put back what a form held when a page is opened again: that would be the token of the page before.
        super().__init__(required=False, initial=uuid4)
        self.widget.attrs["autocomplete"] = "off"

    def clean(self, value: Any) -> UUID | None:
        try:
            return super().clean(value)
        except forms.ValidationError:
            return None

    def bound_data(self, data: Any, initial: Any) -> Any:
        """A form that comes back keeps its token, and has one in any case."""
        return data if self.clean(data) else initial


class OnceForm(ConsoleForm):
    """What is sent by it is made once (console/once.py); its template has `{{ form.once }}` beside the CSRF token."""

    once = OnceField()

    def begin_anew(self) -> None:
        """Another token, under which what is sent is another thing."""
        self.data = self.data.copy()
        self.data["once"] = str(uuid4())


class GuardedForm(ConsoleForm):
    """A form of what is there already, which takes back nothing that others have changed since its page was opened.

    `now` is what is in force, by name. The page sends along what it has shown (`{{ form.shown }}` in the hidden field `shown`);
    what differs from that was changed by whoever saves, and only that is sent on. Of two who change the same the later one
    wins; of a list, whose order says nothing, both keep what they have added or taken out.
    """

    def __init__(self, data: Any = None, *, now: Mapping[str, Any], **options: Any) -> None:
        super().__init__(data, **options)
        self._in_force = dict(now)
        self._shown = {name: _text(value) for name, value in now.items()} | _told(data, now)

    @property
    def shown(self) -> str:
        """What the page had in its fields when it was opened."""
        return json.dumps(self._shown)

    def changed(self, typed: Mapping[str, Any]) -> dict[str, Any]:
        """Of `typed`, by names of `now`, what whoever saves has changed and is not like that already."""
        found = {name: value for name, value in typed.items() if _text(value) != self._shown[name]}
        for name, value in found.items():
            if isinstance(value, list):
                found[name] = _both(value, shown=json.loads(self._shown[name]), now=self._in_force[name])
        return {name: value for name, value in found.items() if _text(value) != _text(self._in_force[name])}


def _told(data: Any, now: Mapping[str, Any]) -> dict[str, str]:
    """By name, what a page says that it has shown. Anything can be sent: what is no value of that kind is left out."""
    try:
        told = json.loads((data or {}).get("shown", "{}"))
        values = {
            name: json.loads(told[name]) for name in now if isinstance(told, dict) and isinstance(told.get(name), str)
        }
    except (ValueError, RecursionError):
        return {}
    return {
        name: told[name] for name, value in values.items() if isinstance(value, list) == isinstance(now[name], list)
    }


def _text(value: Any) -> str:
    return json.dumps(sorted(value) if isinstance(value, list) else plain(value), sort_keys=True, default=str)


def _both(typed: list[Any], *, shown: list[Any], now: list[Any]) -> list[Any]:
    """What is there now, without what was taken out, and with what was added."""
    return [each for each in now if each in typed or each not in shown] + [
        each for each in typed if each not in now and each not in shown
    ]


def plain(value: Any) -> Any:
    """20 for 20.0, as a person writes it."""
    return int(value) if isinstance(value, float) and value.is_integer() else value


def in_words(choices: Any) -> list[Any]:
    """Choices, and groups of them, in the language of the page."""
    return [
        (worded(value), in_words(label)) if isinstance(label, list | tuple) else (value, worded(label))
        for value, label in choices
    ]


def ruled(rule: Callable[[Any], str | None]) -> Callable[[Any], None]:
    """A rule of the services as a field's validator, so that a form names everything that is wrong at once."""

    def validate(value: Any) -> None:
        problem = rule(value)
        if problem is not None:
            raise forms.ValidationError(sentence(problem))

    return validate


class AddressField(forms.EmailField):
    """An email address, in lower case before it is judged: so it is kept, and a few letters are longer there.

    One in quotes could hold a whole sentence, and mails of the service name addresses to other people: it is refused.
    """

    def __init__(self, **options: Any) -> None:
        options.setdefault("label", "Email")
        options.setdefault("max_length", 254)
        super().__init__(**options)

    def to_python(self, value: Any) -> str:
        return str(super().to_python(value)).lower()

    def validate(self, value: Any) -> None:
        super().validate(value)
        if '"' in value:
            raise forms.ValidationError(EmailValidator.message, code="invalid")


class CidrsField(forms.CharField):
    """Blocks one a line (commas and spaces do as well), as a list of strings. Each is judged by the rules of whitelists."""

    widget = forms.Textarea

    def __init__(self, **options: Any) -> None:
        options.setdefault("required", False)
        options.setdefault("max_length", 40_000)
        super().__init__(**options)
        self.widget.attrs |= {"rows": 5, "spellcheck": "false", "autocomplete": "off", "autocapitalize": "off"}
        self.widget.attrs["class"] = "mono"

    def clean(self, value: Any) -> list[str]:
        """The entries in the order given."""
        text = super().clean(value)
        cidrs = [entry for entry in re.split(r"[\s,;]+", text) if entry]
        problems = whitelist_problems(cidrs, field="")
        if problems:
            raise forms.ValidationError([_line(problem) for problem in problems])
        return cidrs

    def prepare_value(self, value: Any) -> Any:
        """A list one entry a line."""
        return "\n".join(value) if isinstance(value, list | tuple) else value


def partitions_typed(text: str, *, most: int) -> list[int]:
    """Numbers and ranges, such as 0, 2, 5-7, each once and in order. Raises ValidationError."""
    found: set[int] = set()
    for part in re.split(r"[\s,;]+", text.strip(" ,;")):
        match = re.fullmatch(r"(\d{1,7})(?:-(\d{1,7}))?", part)
        if match is None:
            raise forms.ValidationError(f"“{part}” is no partition and no range of them.")
        first, last = int(match[1]), int(match[2] or match[1])
        if last < first or last - first >= most:
            raise forms.ValidationError(f"“{part}” is no range of partitions.")
        found.update(range(first, last + 1))
    if len(found) > most:
        raise forms.ValidationError(f"At most {most} at once.")
    return sorted(found)
