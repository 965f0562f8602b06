"""Generation engines: one file per engine, all with the interface of `models.actor.AnsweringActor`."""
