# The viewer: the library in WebAssembly against the command line (in node), and its page in a browser. Built by `make viewer`, which
# fetches a compiler; without it these tests are skipped. `make viewer-test` builds it first.

bats_require_minimum_version 1.5.0

module=build/viewer/objects/viewer.wasm
page=build/viewer/fraglab-viewer.html

setup() {
    cd "$BATS_TEST_DIRNAME/../.." || return 1
    [ -f "$module" ] && [ -f "$page" ] || skip "the viewer is not built (make viewer)"
    # Rows name the commit.
    grep -qaF "$(./fraglab --version | sed 's/.*(//; s/).*//')" "$module" || skip "the viewer was built from another commit (make viewer)"
}

# in_node FUNCTION of tests/viewer/core_test.js, or a skip.
in_node() {
    command -v node >/dev/null || skip "no node"
    node tests/viewer/core_test.js ./fraglab "$module" "$1"
}

# in_browser FUNCTION of tests/viewer/viewer_test.py, or a skip.
in_browser() {
    local found=0
    python3 -c 'import sys; sys.path.insert(0, "tests/report"); import page_driver; sys.exit(0 if page_driver.find_browser() else 77)' || found=$?
    [ "$found" != 77 ] || skip "no Chromium"
    [ "$found" = 0 ]
    python3 tests/viewer/viewer_test.py ./fraglab "$page" "$1"
}

in_firefox() {
    local found=0
    python3 -c 'import sys; sys.path.insert(0, "tests/viewer"); import firefox_driver; sys.exit(0 if firefox_driver.find_firefox() else 77)' || found=$?
    [ "$found" != 77 ] || skip "no Firefox"
    [ "$found" = 0 ]
    python3 tests/viewer/viewer_test.py ./fraglab "$page" "$1"
}

@test "rows are those of the command line" { in_node rows_are_those_of_the_command_line; }
@test "bounds and skipped requests are too" { in_node bounds_and_skipped_requests_are_too; }
@test "cards are those of the command line" { in_node cards_are_those_of_the_command_line; }
@test "least capacities and leaks are too" { in_node least_capacities_and_leaks_are_too; }
@test "explanations are those of the command line" { in_node explanations_are_those_of_the_command_line; }
@test "pages are those of the command line" { in_node pages_are_those_of_the_command_line; }
@test "damaged files are refused in the same words" { in_node damaged_files_are_refused_in_the_same_words; }
@test "changed bytes never end the instance" { in_node changed_bytes_never_end_the_instance; }
@test "what is wrong is said" { in_node what_is_wrong_is_said; }
@test "memory that runs out is said" { in_node memory_that_runs_out_is_said; }
@test "converted recordings give the same rows" { in_node converted_recordings_give_the_same_rows; }

@test "the page's figures are those of the command line" { in_browser figures_are_those_of_the_command_line; }
@test "the page's explanation is that of the command line" { in_browser explanation_is_that_of_the_command_line; }
@test "the page's explorer is that of the report" { in_browser explorer_is_that_of_the_report; }
@test "the least device and leaks are shown" { in_browser least_device_and_leaks_are_shown; }
@test "chosen policies are drawn" { in_browser chosen_policies_are_drawn; }
@test "nothing of a recording runs" { in_browser nothing_of_a_recording_runs; }
@test "bad files are refused in a sentence, and the page goes on" { in_browser bad_files_are_refused_in_a_sentence; }
@test "the page goes on when memory ran out" { in_browser memory_that_runs_out_is_said_and_the_page_goes_on; }
@test "work can be stopped" { in_browser work_can_be_stopped; }
@test "nothing is fetched" { in_browser nothing_is_fetched; }

@test "Firefox shows the same" { in_firefox firefox_shows_the_same; }
@test "nothing of a recording runs in Firefox" { in_firefox nothing_of_a_recording_runs_in_firefox; }
