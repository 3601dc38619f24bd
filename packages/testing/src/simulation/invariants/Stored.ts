/**
 * What the cloud has acknowledged is stored: at that moment, in the history and in the
 * shadow, and still at the end.
 */
import { type DeviceId, HistoryStore, ShadowStore } from "@device-cloud/core"
import { Effect, Option } from "effect"
import type { AcknowledgedReport, Inspection, Invariant } from "../Witness.ts"

export const name = "acknowledged means stored"

export const make = ({ read, violated }: Inspection): Invariant => {
  /** The latest acknowledged value of each property. */
  const latest = new Map<DeviceId, Map<string, AcknowledgedReport>>()

  const checkShadow = ({ device, propertyId, time, value }: AcknowledgedReport, when: string) => {
    const shadow = Option.getOrUndefined(
      read(Effect.flatMap(Effect.service(ShadowStore), (store) => store.get(device.deviceId)))
    )
    // The device was deleted.
    if (shadow === undefined) return
    const reported = shadow.reported[propertyId]
    if (reported === undefined || reported.time < time || (reported.time === time && reported.value !== value)) {
      violated(
        name,
        `${device.deviceName} has reported ${propertyId} ${value} of ${time}; its shadow has ${
          JSON.stringify(reported)
        } ${when}`
      )
    }
  }

  const checkHistory = ({ device, propertyId, time, value }: AcknowledgedReport) => {
    const samples = read(Effect.flatMap(
      Effect.service(HistoryStore),
      (store) => store.samples(device.deviceId, propertyId, { start: time, end: time, limit: 10, order: "asc" })
    ))
    if (!samples.some((sample) => sample.value === value)) {
      violated(name, `${device.deviceName} has reported ${propertyId} ${value} of ${time}; its history lacks it`)
    }
  }

  return {
    acknowledged: (report) => {
      checkShadow(report, "when it is acknowledged")
      checkHistory(report)
      const { device: { deviceId }, propertyId } = report
      const known = latest.get(deviceId)
      if (known === undefined) latest.set(deviceId, new Map([[propertyId, report]]))
      else if (report.time >= (known.get(propertyId)?.time ?? 0)) known.set(propertyId, report)
    },
    finished: () => {
      for (const reports of latest.values()) {
        for (const report of reports.values()) checkShadow(report, "at the end")
      }
    }
  }
}
