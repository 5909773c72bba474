"""Entries of the audit trail from before become a chain in each organisation, in the order in which they were written."""

from django.db import migrations

from controlplane.core.audit_chain import Link, chained

AT_ONCE = 1_000


def chain(apps, _editor):
    """As audit_sealing.py does it from now on; what a process of the release before writes meanwhile is the worker's."""
    entries = apps.get_model("core", "AuditEntry")._base_manager
    chains = apps.get_model("core", "AuditChain")._base_manager
    unchained = entries.filter(number=None)
    for organisation_id in list(unchained.order_by("organisation_id").values_list("organisation_id", flat=True).distinct()):
        end = chains.filter(organisation_id=organisation_id).first()
        last = Link(end.number, end.hash) if end else Link()
        while found := list(unchained.filter(organisation_id=organisation_id).order_by("pk")[:AT_ONCE]):
            last = chained(found, last)
            entries.bulk_update(found, ["number", "hash"])
        chains.update_or_create(organisation_id=organisation_id, defaults={"number": last.number, "hash": last.hash})


class Migration(migrations.Migration):
    """Data only."""

    dependencies = [("core", "0005_audit_chain")]
    operations = [migrations.RunPython(chain, migrations.RunPython.noop)]
