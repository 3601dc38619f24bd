/**
 * The forms in which history is exported.
 */
import type { DeviceHistory, Json } from "@device-cloud/core"
import { Effect, Schema, type Scope, Stream } from "effect"
import { HttpServerResponse } from "effect/http"
import * as Csv from "../Csv.ts"
import { endingWith } from "../middleware/EndingStream.ts"

export const ExportFormat = Schema.Literals(["csv", "ndjson"])

const columns = ["device_id", "device_name", "property_id", "time", "value"]

/** Texts as they are; numbers, and all else, as JSON. */
const valueCell = (value: Json): string => {
  if (typeof value === "number") return String(value)
  return Csv.textCell(typeof value === "string" ? value : JSON.stringify(value))
}

const formats = {
  csv: {
    contentType: Csv.contentType,
    head: [Csv.line(columns)],
    lines: ({ device: { deviceId, deviceName }, samples }: DeviceHistory) => {
      const cells = [Csv.textCell(deviceId), Csv.textCell(deviceName)]
      return samples.map(({ propertyId, time, value }) =>
        Csv.line([...cells, Csv.textCell(propertyId), String(time), valueCell(value)])
      ).join("")
    }
  },
  ndjson: {
    contentType: "application/x-ndjson",
    head: [],
    lines: ({ device: { deviceId, deviceName }, samples }: DeviceHistory) =>
      samples.map(({ propertyId, time, value }) =>
        JSON.stringify({
          device_id: deviceId,
          device_name: deviceName,
          property_id: propertyId,
          time,
          value
        }) + "\n"
      ).join("")
  }
} as const

/** Values that are written at once: about a millisecond. Others have their turn after them. */
const sliceSize = 1000

const inSlices = ({ device, samples }: DeviceHistory): Stream.Stream<DeviceHistory> =>
  Stream.range(0, Math.ceil(samples.length / sliceSize) - 1).pipe(
    Stream.rechunk(1),
    Stream.mapEffect((slice) =>
      Effect.as(Effect.yieldNow, { device, samples: samples.slice(slice * sliceSize, (slice + 1) * sliceSize) })
    )
  )

/**
 * A response that is written while it is read: a client that does not read stops
 * the stream. A failure of the stream, or of `end`, ends the connection before the
 * response is whole.
 */
export const exportResponse = <E, E2>(
  history: Stream.Stream<DeviceHistory, E>,
  end: Effect.Effect<never, E2>,
  format: typeof ExportFormat.Type = "csv"
): Effect.Effect<HttpServerResponse.HttpServerResponse, never, Scope.Scope> => {
  const { contentType, head, lines } = formats[format]
  const text = history.pipe(
    Stream.flatMap(inSlices),
    Stream.map(lines),
    (text) => Stream.concat(Stream.fromIterable(head), text),
    Stream.encodeText
  )
  return Effect.map(endingWith(text, end), (body) =>
    HttpServerResponse.stream(
      body,
      { contentType, headers: { "content-disposition": `attachment; filename="history.${format}"` } }
    ))
}
