"""Users of an instance: made, given another password, deleted. A password that we made is shown once."""

from __future__ import annotations

from typing import TYPE_CHECKING

from django.contrib import messages
from django.shortcuts import redirect, render
from django.views.decorators.http import require_http_methods, require_POST

from controlplane.access import selectors, users
from controlplane.console.forms.access import PasswordForm, UserForm
from controlplane.console.listing import listing, searched
from controlplane.console.page import tenant_page
from controlplane.console.proof import proof_asked
from controlplane.console.templatetags.console import count
from controlplane.core.errors import Conflict, SluiceError, Unavailable
from controlplane.instances.models import InstanceState
from controlplane.instances.selectors import instance_get

if TYPE_CHECKING:
    from django.http import HttpRequest, HttpResponse

    from controlplane.accounts.selectors import Caller


@require_http_methods(["GET", "HEAD", "POST"])
@tenant_page
@proof_asked
def listed(request: HttpRequest, caller: Caller, instance_id: str) -> HttpResponse:
    """Every user, and a new one. The answer to the form is the page itself, with the password in it that was made."""
    instance = instance_get(organisation=caller.organisation, instance_id=instance_id)
    form, made, password = UserForm(request.POST or None), None, None
    if request.method == "POST" and form.is_valid():
        try:
            made, password = users.user_create(**caller.place(instance.id), **form.wanted())
            form = UserForm()
        except SluiceError as error:
            form.refuse(error)
    search, away = searched(request), None
    views: list[selectors.UserView] = []
    try:
        views = selectors.users_with_acls(organisation=caller.organisation, instance_id=instance.id)
    except (Unavailable, Conflict) as error:
        away = error
    context = {
        "instance": instance,
        "tab": "access",
        "part": "users",
        "running": instance.state == InstanceState.RUNNING,
        "form": form,
        "made": made,
        "password": password,
        "away": away,
        "none_at_all": not views,
        "listing": listing(request, [view for view in views if search.lower() in view.name.lower()], search=search),
    }
    if request.htmx and request.method != "POST":  # type: ignore[attr-defined]
        return render(request, "console/parts/user_rows.html", context)
    status = 422 if form.errors else 503 if isinstance(away, Unavailable) else 200
    return render(request, "console/users.html", context, status=status)


@require_http_methods(["GET", "HEAD", "POST"])
@tenant_page
@proof_asked
def password(request: HttpRequest, caller: Caller, instance_id: str, user: str) -> HttpResponse:
    """Another password, at once or with the one before for a while."""
    instance = instance_get(organisation=caller.organisation, instance_id=instance_id)
    view = selectors.user_get(organisation=caller.organisation, instance_id=instance.id, name=user)
    form, made, is_done = PasswordForm(request.POST or None), None, False
    if request.method == "POST" and form.is_valid():
        try:
            changed, made = users.user_password_set(**caller.place(instance.id), name=user, **form.wanted())
        except SluiceError as error:
            form.refuse(error)
        else:
            view, form, is_done = selectors.user_shown(changed), PasswordForm(), True
    context = {
        "instance": instance,
        "tab": "access",
        "part": "users",
        "view": view,
        "form": form,
        "done": is_done,
        "password": made,
    }
    return render(request, "console/user_password.html", context, status=422 if form.errors else 200)


@require_POST
@tenant_page
@proof_asked
def delete(request: HttpRequest, caller: Caller, instance_id: str, user: str) -> HttpResponse:
    """Nobody logs in by this name any more."""
    instance = instance_get(organisation=caller.organisation, instance_id=instance_id)
    with_acls = request.POST.get("with_acls") == "yes"
    deleted = users.user_delete(**caller.place(instance.id), name=user, with_acls=with_acls)
    gone = f", with {count(deleted.acls_deleted, 'ACL,ACLs')}" if deleted.acls_deleted else ""
    messages.success(request, f"User {user} was deleted{gone}.")
    if deleted.acls_left != 0:
        left = "ACLs" if deleted.acls_left is None else count(deleted.acls_left, "ACL,ACLs")
        messages.warning(request, f"What the user had stays, {left}: whoever is given the name {user} later has it.")
    if deleted.is_super_user:
        messages.warning(request, f"User:{user} is still among the super users of the instance's config.")
    return redirect("console:users", caller.organisation.id, instance.id)
