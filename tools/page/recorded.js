// Recorded: recordings of networks, one of which is shown: the picture, what is selected, a slider and
// charts over time.

import {duration, html} from '/text.js';
import {addTotals, Charts} from '/charts.js';
import {Map_} from '/map.js';
import {Panel} from '/panel.js';
import {Player} from '/player.js';

export class Recorded {
  // `networks`: [{name, shape, messages}].
  constructor(place, networks) {
    const choice = html('select', {'aria-label': 'run', change: () => this.#show(networks[choice.value])},
        networks.map((one, i) => html('option', {value: i}, one.name || 'the run')));
    choice.hidden = networks.length < 2;
    const button = html('button', {}, 'play');
    const slider = html('input', {type: 'range', 'aria-label': 'moment of the run'});
    this.controls = {slider, button};
    this.clock = html('output', {class: 'clock'});
    this.picture = html('div', {class: 'picture'});
    const side = html('div', {class: 'side'}), below = html('div', {class: 'over-time'});
    place.append(html('div', {class: 'moment'}, choice, button, slider, this.clock), this.picture, side,
        below);
    this.charts = new Charts(below, {live: false});
    addTotals(this.charts);
    this.panel = new Panel(side, {live: () => false});
    slider.addEventListener('input', () => this.player.go(Number(slider.value)));
    button.addEventListener('click', () => this.player.toggle());
    this.#show(networks[0]);
  }

  // The first moment is the one of the deepest queue, or of the highest rate where none was seen.
  #show({shape, messages}) {
    const {charts, panel} = this;
    this.player?.stop();
    const player = this.player = new Player(messages, shape, this.controls);
    const map = new Map_(this.picture, shape, index => {
      map.mark(index);
      panel.show(shape.nodes[index], shape, index);
      panel.update(player.model);
    });
    panel.show_root();
    charts.clear();
    const deepest = {value: 0, look: 0}, fastest = {value: -1, look: 1};
    player.through(model => {
      charts.take(model);
      for (const [most, key] of [[deepest, 'deepest'], [fastest, 'rate']]) {
        if (model.totals[key] > most.value) [most.value, most.look] = [model.totals[key], model.looks];
      }
    });
    charts.zoom(Infinity);
    player.reached = model => {
      map.update(model);
      panel.update(model);
      charts.moment = model.now;
      charts.at = null;
      charts.draw();
      this.clock.textContent = duration(model.now);
    };
    player.go(deepest.look || fastest.look);
  }
}
