"""Look the pinned dependencies up among the known vulnerabilities: ``make audit``.

Leaves with 1 when one is vulnerable. A package that the advisories could not be asked about counts
as not audited, and is said to be so: without a network nothing is, and silence would look like
safety.
"""

import json
import subprocess
import sys
from pathlib import Path

CONSTRAINTS = Path(__file__).parents[1] / "constraints.txt"
SECONDS = 300


def main() -> int:
    """Run pip-audit and tell what it could and could not say."""
    argv = [sys.executable, "-m", "pip_audit", "--requirement", str(CONSTRAINTS)]
    options = ["--no-deps", "--disable-pip", "--format", "json", "--progress-spinner", "off"]
    try:
        done = subprocess.run(
            [*argv, *options], capture_output=True, text=True, check=False, timeout=SECONDS
        )
        packages = json.loads(done.stdout)["dependencies"]
    except (subprocess.TimeoutExpired, json.JSONDecodeError) as error:
        sys.stderr.write(f"audit: NOT DONE, the advisories do not answer: {error!r}\n")
        return 0
    vulnerable = [each for each in packages if each.get("vulns")]
    skipped = [each["name"] for each in packages if "skip_reason" in each]
    for each in vulnerable:
        for found in each["vulns"]:
            fixed = ", ".join(found["fix_versions"]) or "no release"
            sys.stdout.write(f"{each['name']} {each['version']}: {found['id']}, fixed in {fixed}\n")
    n_audited = len(packages) - len(skipped)
    verdict = f"{n_audited} of {len(packages)} packages audited, {len(vulnerable)} vulnerable"
    sys.stdout.write(f"audit: {verdict}\n")
    if not n_audited:
        sys.stderr.write("audit: NOT DONE, no package is known to the index that was asked\n")
    elif skipped:
        sys.stderr.write(f"audit: not asked about: {', '.join(skipped)}\n")
    return 1 if vulnerable else 0


if __name__ == "__main__":
    sys.exit(main())
