// Player: goes through the messages of a recording. Messages tell changes alone, so that the way back
// begins anew.

import {Model} from '/model.js';

const kBetween = 200;  // ms from message to message

export class Player {
  // `slider` stands for the moment, `button` plays and stops.
  constructor(messages, shape, {slider, button}) {
    this.messages = messages;
    this.shape = shape;
    this.slider = slider;
    this.button = button;
    this.done = 0;
    this.model = new Model(shape);
    slider.max = messages.length;
    slider.min = messages.length ? 1 : 0;
    slider.addEventListener('input', () => this.go(Number(slider.value)));
    button.addEventListener('click', () => this.timer ? this.stop() : this.#play());
  }

  // Called with the model after each message, and when the moment is reached.
  applied() {}
  reached() {}

  go(to) {
    if (to < this.done) {
      this.model = new Model(this.shape);
      this.done = 0;
    }
    for (; this.done < to; ++this.done) {
      this.model.apply(this.messages[this.done]);
      this.applied(this.model);
    }
    this.slider.value = this.done;
    if (this.done) this.reached(this.model);
  }

  stop() {
    clearInterval(this.timer);
    this.timer = null;
    this.button.textContent = 'play';
  }

  #play() {
    this.button.textContent = 'stop';
    if (this.done === this.messages.length) this.go(1);
    this.timer = setInterval(() => {
      if (this.done < this.messages.length) this.go(this.done + 1);
      else this.stop();
    }, kBetween);
  }
}
