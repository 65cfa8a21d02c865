// The pinned request: its whole stack, its block in the selected run, and the way to its events.

function factRow(name, ...values) {
  const row = element('div');
  const value = element('dd');
  value.append(...values);
  row.append(element('dt', name), value);
  return row;
}

class PinPanel {
  constructor(explorer) {
    this.explorer = explorer;
    this.panel = explorer.byId('pin');
    explorer.byId('unpin').addEventListener('click', () => explorer.pin(undefined));
    explorer.byId('pin-site').addEventListener('click', () => this.searchSite());
  }

  show() {
    const { explorer } = this;
    const { pinned, run } = explorer;
    this.panel.hidden = pinned === undefined;
    const key = `${explorer.trace.number} ${run.number} ${pinned}`;
    if (pinned === undefined || key === this.key) return;
    this.key = key;
    const block = run.blockOf(pinned);
    const bytes = block < 0 ? explorer.trace.bytes[pinned] : run.bytes[block];
    explorer.byId('pin-title').textContent = `Pinned: ${bytesText(bytes)}, ${requestName(explorer.trace, pinned)}`;
    explorer.byId('pin-facts').replaceChildren(...this.facts(pinned, block));
    this.fillStack(pinned);
  }

  facts(request, block) {
    const { run, trace } = this.explorer;
    const freed = trace.free[request];
    const life = Math.min(freed, run.last + 1) - trace.begin[request];
    return [
      factRow('requested', bytesText(trace.bytes[request])),
      ...(block < 0 ? [factRow('block', `none: ${run.label} did not serve it`)] : [
        factRow('block', `${bytesText(run.bytes[block])} at ${addressText(run.address[block])}`),
        factRow('bytes beyond the request', bytesText(run.bytes[block] - trace.bytes[request])),
      ]),
      factRow('born', this.eventButton(trace.begin[request])),
      factRow('freed', freed === NEVER ? 'never' : this.eventButton(freed)),
      factRow('lived', `${countText(life)} events${freed === NEVER ? ' up to the end' : this.lifeTime(request)}`),
      factRow('where', placeText(trace, request)),
    ];
  }

  lifeTime(request) {
    const { trace } = this.explorer;
    if (trace.times === undefined) return '';
    return `, ${timeText(trace.times[trace.free[request]] - trace.times[trace.begin[request]])}`;
  }

  eventButton(event) {
    const { explorer } = this;
    const button = element('button', `event ${countText(event)}`, 'link');
    button.type = 'button';
    button.addEventListener('click', () => explorer.select(event));
    return button;
  }

  // The frame that names the request stands out; paths are whole in what the pointer tells.
  fillStack(request) {
    const { trace } = this.explorer;
    const frames = trace.stackOf(request);
    const named = trace.sites[trace.site[request]][0] - 1;
    const items = frames.map((frame) => {
      const item = element('li', trace.frameText(frame), frame === named ? 'named' : undefined);
      const [place] = trace.frames[frame][0].split(' ', 1);
      item.title = `${trace.frames[frame][1]}:${place.slice(place.lastIndexOf(':') + 1)}`;
      return item;
    });
    this.explorer.byId('pin-stack').replaceChildren(...items);
    this.explorer.byId('pin-none').hidden = frames.length > 0;
    this.explorer.byId('pin-site').hidden = named < 0;
  }

  // All requests of the pinned one's call site.
  searchSite() {
    const { trace, pinned } = this.explorer;
    const shown = trace.siteName(trace.site[pinned]);
    this.explorer.search.set(`"${shown.replace(/"/g, '')}"`);
  }
}
