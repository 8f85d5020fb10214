// Player: goes through the messages of a recording. Messages tell changes alone, so that the way back
// begins anew.

import {Model} from '/model.js';

const kBetween = 200;  // ms from message to message

export class Player {
  // `slider` stands for the moment, `button` says what toggle() would do. Who makes them listens to
  // them.
  constructor(messages, shape, {slider, button}) {
    this.messages = messages;
    this.shape = shape;
    this.slider = slider;
    this.button = button;
    this.done = 0;
    this.model = new Model(shape);
    slider.max = messages.length;
    slider.min = messages.length ? 1 : 0;
  }

  // Called with the model when the moment is reached.
  reached() {}

  // Goes through all messages, and calls `each` with the model after each.
  through(each) {
    const model = new Model(this.shape);
    for (const message of this.messages) {
      model.apply(message);
      each(model);
    }
  }

  go(to) {
    if (to < this.done) {
      this.model = new Model(this.shape);
      this.done = 0;
    }
    // Two messages make rates. Those on the way have no picture.
    while (this.done < to - 2) this.model.absorb(this.messages[this.done++]);
    while (this.done < to) this.model.apply(this.messages[this.done++]);
    this.slider.value = this.done;
    if (this.done) this.reached(this.model);
  }

  toggle() {
    if (this.timer) this.stop();
    else this.#play();
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
