"""Whoever is signed in stays so: rows of Django's own table move into ours. Back, everybody signs in again."""

from datetime import UTC, datetime, timedelta

from django.conf import settings
from django.contrib.auth import SESSION_KEY
from django.contrib.sessions.backends.db import SessionStore
from django.db import migrations

AT_ONCE = 500


def move(apps, _editor):
    """Of sessions that go on and are somebody's."""
    before, after = apps.get_model("sessions", "Session"), apps.get_model("accounts", "Session")
    people = set(apps.get_model("accounts", "User").objects.values_list("pk", flat=True))
    now, found = datetime.now(UTC), []
    for row in before.objects.filter(expire_date__gt=now).iterator(AT_ONCE):
        # What another secret key has signed reads as empty.
        user = int(SessionStore().decode(row.session_data).get(SESSION_KEY) or 0)
        if user in people:
            found.append(
                after(
                    session_key=row.session_key,
                    session_data=row.session_data,
                    expire_date=row.expire_date,
                    user_id=user,
                    begun_at=row.expire_date - timedelta(seconds=settings.SESSION_COOKIE_AGE),
                    seen_at=now,
                )
            )
    after.objects.bulk_create(found, batch_size=AT_ONCE)
    before.objects.all().delete()


class Migration(migrations.Migration):
    """Data only."""

    dependencies = [("accounts", "0006_sessions"), ("sessions", "0001_initial")]
    operations = [migrations.RunPython(move, migrations.RunPython.noop)]
