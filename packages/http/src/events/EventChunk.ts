/**
 * Events that go to streams together: their text is made once, and their bytes
 * once for all streams that show all of them.
 */
import type { FeedPlace } from "@device-cloud/core"
import { bytesOf } from "./ServerSentEvent.ts"

export class EventChunk {
  readonly #places: Array<FeedPlace> = []
  readonly #texts: Array<string> = []
  #bytes: Uint8Array | undefined
  #length = 0

  /** Characters. */
  get length(): number {
    return this.#length
  }

  /** The place of the last event. */
  get last(): FeedPlace {
    return this.#places.at(-1)!
  }

  /** Adds the text of the next event, before the bytes are asked for. */
  add(place: FeedPlace, text: string): void {
    this.#places.push(place)
    this.#texts.push(text)
    this.#length += text.length
  }

  /** The bytes of the events after a place, of which there is at least one. */
  after(place: FeedPlace): Uint8Array {
    const from = this.#places.findIndex((each) => each > place)
    return from === 0 ? this.#bytes ??= bytesOf(this.#texts.join("")) : bytesOf(this.#texts.slice(from).join(""))
  }
}
