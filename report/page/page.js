// The page as a whole: its own explorer, the theme, and what is opened beside.

const PAGE = { explorers: [] };

function sayProblem(text) {
  byId('problem').textContent = text;
  byId('problem').hidden = false;
}

function isAnyDrawn(traces) {
  return traces.some((trace) => trace.is_drawn && trace.runs.some((run) => run.is_drawn));
}

function onTheme(isNow) {
  for (const explorer of PAGE.explorers) {
    explorer.forget();
    if (isNow) explorer.drawNow();
  }
}

async function start() {
  document.querySelectorAll('table.sortable').forEach(makeSortable);
  new Theme(onTheme);
  const source = new PageSource(new PageData(document));
  const traces = source.traces();
  if (!isAnyDrawn(traces)) return;
  if (typeof DecompressionStream === 'undefined') {
    sayProblem('This browser cannot unpack the data of the timeline and the memory map (it has no DecompressionStream); ' +
      'Chromium 80, Firefox 113 and Safari 16.4 and what came after can. The tables below are complete.');
    return;
  }
  const second = new SecondRecording(byId('explorer'));
  byId('explorer').hidden = false;
  const explorer = new Explorer(traces, '');
  PAGE.explorers = [explorer];
  second.listen();
  await explorer.open(explorer.wanted());
}

function sayFailure(problem) {
  sayProblem(`The timeline and the memory map cannot be shown: ${problem.message}. The tables below are complete.`);
  throw problem;
}

start().catch(sayFailure);
