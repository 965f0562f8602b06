# Manifests: the table of questions of each split, one row per question, frozen before any model runs.
#
# REQUIRES nothing, a raw folder, or the hub
# PROVIDES results/<study>/manifests/<dataset>/<split>/ and results/<study>/leakage/

EVERYTHING = [(name, split) for name, dataset in DATASETS.items() for split in dataset["splits"]]


def draw_phantom(w):
    phantom = config["phantoms"][w.phantom]
    settings = {key: value for key, value in phantom.items() if key != "format"}
    spec = {"name": w.phantom, "writer": plugin("writers", phantom["format"]), **settings}
    return {}, [entry(artifact("phantoms", w.phantom), spec)]


def download_dataset(w):
    """This job complains about a missing folder, so that a study can be planned without its data."""
    source, loader = DATASETS[w.dataset]["source"], DATASETS[w.dataset]["loader"]
    if "hub" in source:
        where = {"hub": source["hub"], "revision": source["revision"], "files": SHARDS.hub_files(w.dataset)}
    else:
        where = {"folder": folder_of(source)}
    return {}, [entry(artifact("downloads", w.dataset), {"loader": loader, **where})]


def folder_of(source):
    return os.path.relpath(REPOSITORY / source["folder"])


def source_of(dataset):
    """Where a data set's official files are: a phantom, or a folder that exists, or what the hub has."""
    source = DATASETS[dataset]["source"]
    if "phantom" in source:
        return artifact("phantoms", source["phantom"])
    if "folder" in source and os.path.isdir(folder_of(source)):
        return folder_of(source)
    return artifact("downloads", dataset)


def build_manifest(w):
    dataset = DATASETS[w.dataset]
    spec = {
        "dataset": w.dataset,
        "split": w.split,
        "loader": plugin("datasets", dataset["loader"]),
        "settings": dataset.get("settings", {}),
        "roles": dataset["roles"][w.split],
        "seed": dataset["seed"],
        **{key: dataset[key] for key in ("select",) if key in dataset},
        **{key: dataset[key][w.split] for key in ("expect_sha256",) if w.split in dataset.get(key, {})},
    }
    return {}, [entry(artifact("manifests", w.dataset, w.split), spec, source=source_of(w.dataset))]


def check_leakage(w):
    return manifests(EVERYTHING), [entry(artifact("leakage"), {})]


stage(draw_phantom, artifact("phantoms", "{phantom}"), local=True)


stage(download_dataset, artifact("downloads", "{dataset}"), local=True)


stage(build_manifest, artifact("manifests", "{dataset}", "{split}"))


# Fails and names the images if an image that something is fitted on has a second role.
stage(check_leakage, artifact("leakage"))
