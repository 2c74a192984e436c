// SPDX-License-Identifier: BSD-3-Clause
//
// The search runs in a worker, which browsers refuse to pages that are opened as files. There this
// class takes its place: the worker's script runs in a frame of the page, and messages go both ways.
if (location.protocol === "file:")
  window.Worker = class extends EventTarget {
    constructor(script) {
      super();
      this.onmessage = null;
      this.frame = document.createElement("iframe");
      this.frame.hidden = true;
      document.body.append(this.frame);
      const inside = this.frame.contentWindow;
      addEventListener("message", (event) => {
        if (event.source !== inside) return;
        this.dispatchEvent(new MessageEvent("message", { data: event.data }));
        if (this.onmessage) this.onmessage(event);
      });
      inside.document.open();
      inside.document.write("<!doctype html><html><body></body></html>");
      inside.document.close();
      inside.postMessage = (data) => postFrom(inside, data);
      inside.importScripts = (...urls) =>
        urls.reduce((done, url) => done.then(() => load(inside.document, url)), Promise.resolve());
      this.ready = load(inside.document, script);
    }

    postMessage(data) {
      this.ready.then(() =>
        this.frame.contentWindow.dispatchEvent(new MessageEvent("message", { data }))
      );
    }

    terminate() {
      this.frame.remove();
    }
  };

function postFrom(inside, data) {
  dispatchEvent(new MessageEvent("message", { data, source: inside }));
}

function load(document, url) {
  return new Promise((resolve, reject) => {
    const script = document.createElement("script");
    script.src = url;
    script.onload = resolve;
    script.onerror = reject;
    document.body.append(script);
  });
}
