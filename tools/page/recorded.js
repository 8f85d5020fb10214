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
    this.place = place;
    const choice = html('select', {'aria-label': 'run', change: () => this.#show(networks[choice.value])},
        networks.map((one, i) => html('option', {value: i}, one.name || 'the run')));
    choice.hidden = networks.length < 2;
    this.choice = choice;
    this.#show(networks[0]);
  }

  #show({shape, messages}) {
    this.player?.stop();
    const button = html('button', {}, 'play');
    const slider = html('input', {type: 'range', 'aria-label': 'moment of the run'});
    const clock = html('output', {class: 'clock'});
    const picture = html('div', {class: 'picture'}), side = html('div', {class: 'side'});
    const below = html('div', {class: 'over-time'});
    this.place.replaceChildren(html('div', {class: 'moment'}, this.choice, button, slider, clock), picture,
        side, below);
    const charts = new Charts(below);
    addTotals(charts);
    charts.zoom(Infinity);
    const panel = new Panel(side, {live: () => false});
    const map = new Map_(picture, shape, index => {
      map.mark(index);
      panel.show(shape.nodes[index], shape, index);
      panel.update(this.player.model);
    });
    panel.show_root();
    this.player = new Player(messages, shape, {slider, button});
    // The charts have the whole run. The first moment is the one of the deepest queue.
    let deepest = -1, first = 1;
    this.player.applied = model => {
      charts.take(model);
      if (model.totals.deepest > deepest) [deepest, first] = [model.totals.deepest, model.looks];
    };
    this.player.go(messages.length);
    this.player.applied = () => {};
    this.player.reached = model => {
      map.update(model);
      panel.update(model);
      charts.moment = model.now;
      charts.draw();
      clock.textContent = duration(model.now);
    };
    this.player.go(first);
  }
}
