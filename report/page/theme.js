// Light or dark: as the system says, until the reader presses the button. The style sheet holds the
// dark colours once, in a media rule; the button changes what the rule asks for.

const THEMES = {
  system: { media: 'screen and (prefers-color-scheme: dark)', scheme: 'light dark', says: 'as the system' },
  light: { media: 'not all', scheme: 'light', says: 'light' },
  dark: { media: 'screen', scheme: 'dark', says: 'dark' },
};
const THEME_KEY = 'fraglab-report-theme';

class Theme {
  constructor(onChange) {
    this.onChange = onChange;
    this.rule = Array.from(document.styleSheets[0].cssRules)
      .find((rule) => rule.media !== undefined && rule.media.mediaText.includes('prefers-color-scheme'));
    this.system = window.matchMedia('(prefers-color-scheme: dark)');
    this.system.addEventListener('change', () => this.set(this.name));
    byId('theme').hidden = false;
    byId('theme').addEventListener('click', () => this.step());
    // Paper is light: what is drawn is drawn anew for it.
    window.addEventListener('beforeprint', () => this.apply('light', true));
    window.addEventListener('afterprint', () => this.apply(this.name, true));
    this.set(this.remembered());
  }

  // A page from a file may have no storage.
  remembered() {
    try {
      const name = localStorage.getItem(THEME_KEY);
      return THEMES[name] === undefined ? 'system' : name;
    } catch (refused) {
      return 'system';
    }
  }

  remember() {
    try {
      localStorage.setItem(THEME_KEY, this.name);
    } catch (refused) {
      // The next page starts as the system says.
    }
  }

  // The other than what is seen, and from there back to the system's.
  step() {
    const other = this.system.matches ? 'light' : 'dark';
    const next = { system: other, [other]: other === 'dark' ? 'light' : 'dark' }[this.name] || 'system';
    this.set(next);
    this.remember();
  }

  set(name) {
    this.name = name;
    this.apply(name, false);
    byId('theme').textContent = `Theme: ${THEMES[name].says}`;
  }

  apply(name, isNow) {
    if (this.rule !== undefined) this.rule.media.mediaText = THEMES[name].media;
    document.querySelector('meta[name=color-scheme]').content = THEMES[name].scheme;
    STYLE.forget();
    this.onChange(isNow);
  }
}

// What the style sheet says a colour is; asked once for each theme, as asking takes time.
const STYLE = {
  known: new Map(),

  forget() {
    this.known.clear();
  },

  colour(name) {
    let value = this.known.get(name);
    if (value === undefined) {
      value = getComputedStyle(document.documentElement).getPropertyValue(`--${name}`).trim();
      this.known.set(name, value);
    }
    return value;
  },
};

function styleColour(name) {
  return STYLE.colour(name);
}

function isDark() {
  return styleColour('scheme') === 'dark';
}
