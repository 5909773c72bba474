from django.db import migrations, models


class Migration(migrations.Migration):

    dependencies = [("clusters", "0002_away_since")]

    operations = [
        migrations.AddField(
            model_name="physicalcluster",
            name="zookeeper_hosts",
            field=models.CharField(blank=True, db_default="", default="", max_length=255, unique=True),
        ),
    ]
