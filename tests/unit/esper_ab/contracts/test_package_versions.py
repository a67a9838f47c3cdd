from esper_ab.contracts.package_versions import sha256_of_versions


def test_the_hash_of_versions_depends_on_neither_order_nor_case():
    versions = {"numpy": "2.1", "PyYAML": "6.0"}
    assert sha256_of_versions(versions) == sha256_of_versions({"pyyaml": "6.0", "NumPy": "2.1"})
    assert sha256_of_versions(versions) != sha256_of_versions({**versions, "numpy": "2.2"})
    assert sha256_of_versions({}) == ""
