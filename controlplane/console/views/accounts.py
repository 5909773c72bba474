"""Signing up, in and out, the way in, the theme and the language."""

from __future__ import annotations

from typing import TYPE_CHECKING

from django.conf import settings
from django.contrib.auth import authenticate, login, logout
from django.http import HttpResponse, HttpResponseRedirect
from django.shortcuts import redirect, render
from django.urls import reverse
from django.utils.http import url_has_allowed_host_and_scheme
from django.views.decorators.cache import never_cache
from django.views.decorators.debug import sensitive_post_parameters
from django.views.decorators.http import require_http_methods, require_POST, require_safe

from controlplane.accounts import attempts, joining, services
from controlplane.accounts.identity import door, passkeys, second_factor, signing_up
from controlplane.accounts.models import DoorKind
from controlplane.console import challenges, known_browser, passkey_tries, signing_in
from controlplane.console.advice import said
from controlplane.console.forms.accounts import CodeForm, SignInForm, SignUpForm
from controlplane.console.page import LAST_ORGANISATION, to_first_page
from controlplane.console.shell import THEME_COOKIE, THEMES
from controlplane.core.errors import Invalid, SluiceError, TooManyAttempts
from controlplane.core.origin import address_of
from controlplane.core.wording import of_page
from controlplane.mail import outbox
from controlplane.tenants.selectors import organisation_list

if TYPE_CHECKING:
    from django.http import HttpRequest

    from controlplane.accounts.models import User

YEAR_S = 365 * 24 * 3600
BACKEND = "django.contrib.auth.backends.ModelBackend"
SIGN_UP = "sign-up"
"""What is counted by address, in whatever way it is asked for."""


@require_safe
@never_cache
def home(request: HttpRequest) -> HttpResponse:
    """/: strangers learn what this is and sign up, people come to where they last were.

    `?organisation=`: to that one of theirs, as the menu leads there; which of its pages is open, their role says.
    """
    if not request.user.is_authenticated:
        is_mailing = outbox.is_on()
        context = {"form": SignUpForm(asks_password=not is_mailing), "is_mailing": is_mailing}
        context["origin"] = request.build_absolute_uri("/").rstrip("/")
        return render(request, "console/landing.html", context)
    mine = organisation_list(user=request.user)
    wanted = request.GET.get("organisation") or request.session.get(LAST_ORGANISATION, "")
    wanted = wanted.replace("\0", "")  # PostgreSQL is asked for no text with such a sign
    last = mine.filter(pk=wanted).first() or mine.filter(deletion_asked_at=None).first() or mine.first()
    if last is not None:
        return to_first_page(request, request.user, last.id)
    return redirect("console:fleet" if request.user.is_staff else "console:organisation_new")


@require_http_methods(["GET", "HEAD", "POST"])
@sensitive_post_parameters("password")
@never_cache
def sign_up(request: HttpRequest) -> HttpResponse:
    """A new person with a new organisation.

    Where the service sends mail, the rest is behind the link in one, and the answer is the same whoever has the address. Where it
    sends none, they are signed in at once, and nobody signs up from outside its network.
    """
    if request.user.is_authenticated:
        return redirect("console:home")
    is_mailing, sent_to = outbox.is_on(), ""
    form = SignUpForm(request.POST or None, asks_password=not is_mailing)
    if request.method == "POST" and form.is_valid():
        try:
            # Each makes an account and an organisation, or sends a mail to whatever address.
            attempts.asked(what=SIGN_UP, address=address_of(request))
            if not is_mailing:
                joining.sign_up_here_check(address=address_of(request))
                user, organisation = joining.sign_up(**form.cleaned_data, language=of_page())
                login(request, user, backend=BACKEND)
                return known_browser.remember(request, redirect("console:instances", organisation.id), user)
            signing_up.ask(**form.cleaned_data, language=of_page())
            sent_to = form.cleaned_data["email"]
        except SluiceError as error:
            form.refuse(error)
    context = {"form": form, "is_mailing": is_mailing, "sent_to": sent_to}
    return render(request, "console/sign_up.html", context, status=_status(form))


@require_http_methods(["GET", "HEAD", "POST"])
@sensitive_post_parameters("password")
@never_cache
def sign_in(request: HttpRequest) -> HttpResponse:
    """By email and password; one sentence for every reason why not."""
    following = own_address(request, request.POST.get("next") or request.GET.get("next"))
    if request.user.is_authenticated:
        return HttpResponseRedirect(following)
    form = SignInForm(request.POST or None)
    if request.method == "POST" and form.is_valid():
        email = form.cleaned_data["email"].strip()
        counted = {"email": email, "address": address_of(request), "browser": known_browser.name_of(request, email)}
        try:
            attempts.attempt_begin(**counted)
        except TooManyAttempts as error:
            form.refuse(error)
            answer = _sign_in_page(request, form, following, error.http_status, is_kept_out=True)
            answer.headers["Retry-After"] = str(error.retry_after_s)
            return answer
        # Takes as long for an account that does not exist: Django hashes the password then, too.
        user = authenticate(request, username=email, password=form.cleaned_data["password"])
        if user is not None:
            attempts.attempt_succeeded(**counted)
            if user.second_factor_at is not None:
                signing_in.password_was_right(request, user, following)
                return redirect("console:sign_in_code")
            login(request, user)
            services.signed_in(user=user)
            return known_browser.remember(request, HttpResponseRedirect(following), user)
        door.note_write(kind=DoorKind.FAILED, email=email)
        form.add_error("password", "The email or the password is not right.")
    return _sign_in_page(request, form, following, _status(form))


@require_http_methods(["GET", "HEAD", "POST"])
@sensitive_post_parameters("code")
@never_cache
def sign_in_code(request: HttpRequest) -> HttpResponse:
    """The second step, for whoever has done the first."""
    found = None if request.user.is_authenticated else signing_in.waiting(request)
    if found is None:
        return redirect("console:sign_in")
    user, following = found
    is_passkey = "passkey" in request.POST
    form = CodeForm(None if is_passkey else request.POST or None)
    status, wait_s, passkey_problem = 200, 0, ""
    if request.method == "POST" and (is_passkey or form.is_valid()):
        try:
            if is_passkey:
                passkey_tries.checked(request, challenges.SECOND, request.POST["passkey"], user)
            else:
                _code_check(request, user, form.cleaned_data["code"])
        except SluiceError as error:
            if is_passkey:
                passkey_problem = said(error)
            else:
                form.refuse(error)
            status = error.http_status
            wait_s = error.retry_after_s if isinstance(error, TooManyAttempts) else 0
        else:
            signing_in.over(request)
            login(request, user, backend=BACKEND)
            services.signed_in(user=user)
            return known_browser.remember(request, HttpResponseRedirect(following), user)
    if status in (200, 400):
        status = 422 if passkey_problem else _status(form)
    context = {
        "form": form,
        "has_app": second_factor.app_is_on(user),
        "has_passkeys": bool(passkeys.passkey_list(user=user)),
        "passkey_problem": passkey_problem,
    }
    page = render(request, "console/sign_in_code.html", context, status=status)
    if wait_s:
        page.headers["Retry-After"] = str(wait_s)
    return page


@require_POST
@never_cache
def sign_in_passkey(request: HttpRequest) -> HttpResponse:
    """By a passkey alone, which is both factors: it has verified its person."""
    following = own_address(request, request.POST.get("next"))
    if request.user.is_authenticated:
        return HttpResponseRedirect(following)
    try:
        user = passkey_tries.checked(request, challenges.SIGN_IN, request.POST.get("passkey", ""))
    except SluiceError as error:
        status = 422 if error.http_status == 400 else error.http_status
        answer = _sign_in_page(request, SignInForm(), following, status, said(error))
        if isinstance(error, TooManyAttempts):
            answer.headers["Retry-After"] = str(error.retry_after_s)
        return answer
    request.session.flush()  # what it held was a stranger's
    login(request, user, backend=BACKEND)
    services.signed_in(user=user, by="passkey")
    return known_browser.remember(request, HttpResponseRedirect(following), user)


def _code_check(request: HttpRequest, user: User, code: str) -> None:
    """Only who knows the password comes this far, so that nobody keeps somebody else out by trying codes."""
    counted = {"email": user.email, "address": address_of(request), "what": attempts.CODE}
    attempts.attempt_begin(**counted)
    try:
        second_factor.code_check(user=user, code=code)
    except Invalid:
        services.sign_in_failed(user=user, step="code")
        raise
    attempts.attempt_succeeded(**counted)


def _sign_in_page(
    request: HttpRequest,
    form: SignInForm,
    following: str,
    status: int,
    passkey_problem: str = "",
    *,
    is_kept_out: bool = False,
) -> HttpResponse:
    """`is_kept_out`: by wrong passwords, which may have been somebody else's."""
    context = {
        "form": form,
        "next": following,
        "passkeys_are_on": passkeys.is_on(),
        "passkey_problem": passkey_problem,
        "is_kept_out": is_kept_out,
    }
    return render(request, "console/sign_in.html", context, status=status)


@require_POST
def sign_out(request: HttpRequest) -> HttpResponse:
    """The session ends here and on the server."""
    logout(request)
    return redirect("console:sign_in")


@require_POST
def theme(request: HttpRequest) -> HttpResponse:
    """Light, dark, or as the system; kept in a cookie, so that a page is never drawn in the wrong one first."""
    chosen = request.POST.get("theme", "")
    response = HttpResponseRedirect(own_address(request, request.POST.get("next")))
    if chosen in THEMES:
        response.set_cookie(
            THEME_COOKIE, chosen, max_age=YEAR_S, samesite="Lax", httponly=True, secure=request.is_secure()
        )
    return response


@require_POST
def language(request: HttpRequest) -> HttpResponse:
    """The language of pages, kept in a cookie; without one the browser's own wish holds. Mails to whoever is signed in follow."""
    chosen = request.POST.get("language", "")
    response = HttpResponseRedirect(own_address(request, request.POST.get("next")))
    if chosen in dict(settings.LANGUAGES):
        if request.user.is_authenticated:
            services.user_language_set(user=request.user, language=chosen)
        response.set_cookie(
            settings.LANGUAGE_COOKIE_NAME,
            chosen,
            max_age=settings.LANGUAGE_COOKIE_AGE,
            samesite="Lax",
            httponly=True,
            secure=request.is_secure(),
        )
    return response


def own_address(request: HttpRequest, address: str | None) -> str:
    """`address` if it leads to this site, else home."""
    own = url_has_allowed_host_and_scheme(
        address, allowed_hosts={request.get_host()}, require_https=request.is_secure()
    )
    return address if address and own else reverse("console:home")


def _status(form: SignUpForm | SignInForm | CodeForm) -> int:
    return 422 if form.is_bound and form.errors else 200
