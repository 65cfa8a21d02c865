# The page of fraglab report in a browser, as a reader uses it. The tests themselves are functions of tests/report/page_test.py.

bats_require_minimum_version 1.5.0

# One browser serves all tests of the file.
setup_file() {
    export FRAG_BROWSER=$BATS_FILE_TMPDIR/browser
    (cd "$BATS_TEST_DIRNAME/../.." && python3 tests/report/page_driver.py start 3>&-) || [ $? -eq 77 ]
}
teardown_file() { python3 "$BATS_TEST_DIRNAME/page_driver.py" stop; }
setup() { cd "$BATS_TEST_DIRNAME/../.." || return 1; }

# in_browser FUNCTION of tests/report/page_test.py, or a skip.
in_browser() {
    [ -e "$FRAG_BROWSER/pid" ] || skip "no Chromium"
    python3 tests/report/page_test.py "$1"
}

@test "a press pins a block with its whole stack" { in_browser press_pins_a_block_with_its_whole_stack; }
@test "a press in the timeline pins the block there" { in_browser press_pins_in_the_timeline; }
@test "areas are as high as what they show, at every zoom" { in_browser areas_are_as_high_as_what_they_show; }
@test "states hold what a recount finds" { in_browser states_hold_what_a_recount_finds; }
@test "the map shows blocks at their bytes" { in_browser map_shows_blocks_at_their_bytes; }
@test "the map goes by keys" { in_browser map_goes_by_keys; }
@test "the flame graph adds up what is held, by call stack" { in_browser flame_graph_adds_up_what_is_held_by_stack; }
@test "the flame graph goes by keys" { in_browser flame_graph_goes_by_keys; }
@test "as a treemap, areas of the flame graph are in proportion" { in_browser treemap_holds_areas_in_proportion; }
@test "flame graphs of large recordings add up" { in_browser flame_graphs_of_large_recordings_add_up; }
@test "two views show what changed between recordings of a page" { in_browser two_views_show_what_changed; }
@test "purposes are those of the call stacks" { in_browser purposes_are_those_of_the_call_stacks; }
@test "events are listed around the cursor" { in_browser events_are_listed_around_the_cursor; }
@test "events say what the policy did" { in_browser events_say_what_the_policy_did; }
@test "search finds by file, function, size and text" { in_browser search_finds_by_file_function_size_and_text; }
@test "the overview moves what the timeline shows" { in_browser overview_moves_what_the_timeline_shows; }
@test "the theme follows the system until the button is pressed" { in_browser theme_follows_the_system_until_the_button_is_pressed; }
@test "paper shows all rows" { in_browser paper_shows_all_rows; }
@test "narrow screens need no scrolling sideways" { in_browser narrow_screens_need_no_scrolling_sideways; }
@test "everything that is pressed has a name" { in_browser everything_that_is_pressed_has_a_name; }
@test "a snapshot that is dropped shows what its allocator held" { in_browser dropped_snapshot_shows_what_its_allocator_held; }
@test "cursors of two recordings go together" { in_browser cursors_go_together; }
@test "bad files are refused in a sentence" { in_browser bad_files_are_refused_in_a_sentence; }
@test "damaged pickles never break the page" { in_browser damaged_pickles_never_break_the_page; }
@test "long runs step as fast as short ones" { in_browser long_runs_step_as_fast_as_short_ones; }
@test "data are read from the folder beside the page" { in_browser data_are_read_from_the_folder_beside; }
@test "data that are missing are named" { in_browser data_that_are_missing_are_named; }
@test "areas of long runs add up" { in_browser areas_of_long_runs_add_up; }
