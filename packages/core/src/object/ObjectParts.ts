/**
 * Content in parts of one size, for stores that keep it so.
 */
import { Stream } from "effect"

/** What is less than a part. */
interface Waiting {
  readonly chunks: Array<Uint8Array>
  length: number
}

/** Cuts content into parts of `size` bytes; the last one may be shorter. No content: no part. */
export const inParts = (size: number) => <E>(content: Stream.Stream<Uint8Array, E>): Stream.Stream<Uint8Array, E> =>
  Stream.mapAccum(
    content,
    (): Waiting => ({ chunks: [], length: 0 }),
    (waiting, chunk): readonly [Waiting, ReadonlyArray<Uint8Array>] => {
      waiting.chunks.push(chunk)
      waiting.length += chunk.length
      if (waiting.length < size) return [waiting, []]
      const bytes = join(waiting)
      const parts = Array.from(
        { length: Math.floor(bytes.length / size) },
        (_, i) => bytes.subarray(i * size, (i + 1) * size)
      )
      const rest = bytes.subarray(parts.length * size)
      return [{ chunks: [rest], length: rest.length }, parts]
    },
    { onHalt: (waiting) => waiting.length === 0 ? [] : [join(waiting)] }
  )

const join = ({ chunks, length }: Waiting): Uint8Array => {
  const bytes = new Uint8Array(length)
  let at = 0
  for (const chunk of chunks) {
    bytes.set(chunk, at)
    at += chunk.length
  }
  return bytes
}
