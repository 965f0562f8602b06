"""Singular and plural meet, and different words do not."""

import pytest

from dualread.grading.canonical import canonical

# Singulars whose plural has -s, or -es after a sibilant; a hyphen stands where the plural replaces the ending.
BY_S = """
ache headache toothache cache nose disease case phase base vase size gaze maze bronze lapse relapse prolapse synapse
pulse impulse nurse horse course sense response house blouse spouse cause pause clause menopause use abuse misuse
excuse fuse bruise exercise noise cheese rose hose pose purpose dose overdose glucose enzyme kinase lipase increase
decrease release lesion nodule fracture opacity-ies cavity-ies artery-ies biopsy-ies body-ies ovary-ies vein toe shoe
knee eye rib niche psyche douche avalanche edge image stage cartilage passage hemorrhage slice face surface place
device voice choice x-ray t-cell stomach heart lung kidney spleen calorie tie airspace crease phrase dense tense false
"""
BY_ES = """
abscess mass class glass process recess loss cross illness patch branch arch crutch stitch pouch notch bench match
stretch approach reach breach peach coach rash lash flush brush eyelash crush box reflex complex thorax larynx pharynx
calyx apex cortex vertex index appendix matrix helix varix plexus virus sinus fetus foetus thymus uterus thrombus
embolus bronchus focus fundus humerus radius meniscus talus hiatus meatus callus bus bias atlas canvas pancreas iris
pelvis penis clitoris gas biceps triceps forceps quadriceps lens waltz quartz topaz tax suffix fox echo embryo hero
potato lunch trench ditch inch non-mass
"""
BY_SIS = """
diagnosis prognosis stenosis fibrosis necrosis cirrhosis thrombosis kyphosis scoliosis lordosis acidosis alkalosis
anastomosis metastasis hemostasis stasis analysis dialysis paralysis epiphysis diaphysis metaphysis symphysis
prosthesis synthesis hypothesis parenthesis crisis candidiasis psoriasis lithiasis bronchiectasis atelectasis sepsis
axis x-axis oasis emphasis neurosis psychosis pseudarthrosis spondylosis atherosclerosis
"""
LATIN = {
    **{"bronchus": "bronchi", "thrombus": "thrombi", "nucleus": "nuclei", "gyrus": "gyri", "sulcus": "sulci"},
    **{"vertebra": "vertebrae", "scapula": "scapulae", "bulla": "bullae", "fossa": "fossae", "bursa": "bursae"},
    **{"calyx": "calyces", "cortex": "cortices", "matrix": "matrices", "thorax": "thoraces"},
    "hemothorax": "hemothoraces",
    **{"phalanx": "phalanges", "atrium": "atria", "ganglion": "ganglia", "foramen": "foramina", "testis": "testes"},
    **{"tooth": "teeth", "foot": "feet", "half": "halves", "calf": "calves", "arthritis": "arthritides"},
}


def _plurals() -> dict[str, str]:
    found = {}
    for word in BY_S.split():
        stem, _, ending = word.rpartition("-") if word.endswith(("-es", "-ies")) else (word, "", "s")
        found[f"{stem}y" if ending == "ies" else stem] = stem + ending
    found |= {word: f"{word}es" for word in BY_ES.split()}
    found |= {word: f"{word[:-2]}es" for word in BY_SIS.split()}
    return found


PLURALS = {**_plurals(), "quiz": "quizzes"}


@pytest.mark.parametrize(("singular", "plural"), [*PLURALS.items(), *LATIN.items()])
def test_singular_and_plural_are_one(singular, plural):
    assert canonical(singular) == singular
    assert canonical(plural) == singular
    assert canonical(f"Both {plural} of the left side") == f"both {singular} of the left side"


def test_different_words_stay_different():
    words = [*PLURALS, *LATIN, "dens", "basis", "cast", "len", "head", "ax", "pons", "glans", "mas", "gase", "atla"]
    assert len({canonical(word) for word in words}) == len(set(words))


@pytest.mark.parametrize(
    "word",
    [
        *("abscess", "pelvis", "series", "diabetes", "patient's", "mg/s", "yes", "his", "facies", "caries"),
        *("glans", "as", "s"),
    ],
)
def test_words_that_only_look_like_plurals_stay(word):
    assert canonical(word) == word


def test_some_plurals_belong_to_two_words():
    assert canonical("bases") == "base"  # not "basis"
    assert canonical("axes") == "axis"  # not "axe"
    assert canonical("ellipses") == "ellipse"
