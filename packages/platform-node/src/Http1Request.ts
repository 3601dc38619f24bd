/**
 * A request of HTTP/1.1 that may offer to go on with another protocol. `curl --http2` and the HTTP
 * client of Java offer HTTP/2 with each request over plain HTTP, also with a POST.
 */
import { IncomingMessage } from "node:http"

/**
 * For the option `IncomingMessage` of a server that is made elsewhere than by
 * `HttpServer.layer`. An offer of anything but a WebSocket is ignored, as
 * RFC 9110 (7.8) allows. Without it, a server that listens for `upgrade` gets the
 * request without its body.
 */
export class Http1Request extends IncomingMessage {
  /** Whether the client makes an offer and the server listens for it. Node.js sets it, first in the constructor. */
  declare private offered: boolean | null

  get upgrade(): boolean {
    return this.offered === true && (this.method === "CONNECT" || this.headers.upgrade?.toLowerCase() === "websocket")
  }

  set upgrade(offered: boolean | null) {
    this.offered = offered
  }
}
