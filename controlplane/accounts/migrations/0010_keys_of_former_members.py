"""Keys of people who have left an organisation are revoked: they opened nothing, and must not when their owner comes back."""

from datetime import UTC, datetime

from django.db import migrations
from django.db.models import Exists, OuterRef


def revoke(apps, _editor):
    """API keys and access keys."""
    memberships = apps.get_model("tenants", "Membership").objects
    own = Exists(memberships.filter(user=OuterRef("user"), organisation=OuterRef("organisation")))
    for name in ("ApiKey", "AccessKey"):
        rows = apps.get_model("accounts", name)._base_manager
        rows.filter(~own, revoked_at=None).update(revoked_at=datetime.now(UTC))


class Migration(migrations.Migration):
    """Data only."""

    dependencies = [("accounts", "0009_limited_keys")]
    operations = [migrations.RunPython(revoke, migrations.RunPython.noop)]
