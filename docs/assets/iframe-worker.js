/* Search in pages that are opened from a disk, where browsers start no workers: the worker's
   script runs in a hidden frame instead. The theme looks for `IFrameWorker` by this name. */
class IFrameWorker extends EventTarget {
  constructor(url) {
    super()
    this.frame = document.createElement("iframe")
    this.frame.hidden = true
    document.body.appendChild(this.frame)
    const inside = this.frame.contentWindow
    this.loaded = new Promise((resolve) => (inside.started = resolve))
    inside.document.open()
    inside.document.write(`<body><script src="${url}" onload="started()"></script></body>`)
    inside.document.close()
    inside.postMessage = (data) => this.receive(data)
    inside.importScripts = (...urls) =>
      urls.reduce((before, each) => before.then(() => load(inside.document, each)), Promise.resolve())
  }
  receive(data) {
    const event = new MessageEvent("message", { data })
    this.dispatchEvent(event)
    if (this.onmessage) this.onmessage(event)
  }
  postMessage(data) {
    const inside = this.frame.contentWindow
    this.loaded.then(() => inside.dispatchEvent(new MessageEvent("message", { data })))
  }
  terminate() {
    this.frame.remove()
  }
}

function load(page, url) {
  return new Promise((resolve, reject) => {
    const script = page.createElement("script")
    Object.assign(script, { src: url, onload: resolve, onerror: reject })
    page.body.appendChild(script)
  })
}

window.IFrameWorker = IFrameWorker
if (location.protocol === "file:") window.Worker = IFrameWorker
