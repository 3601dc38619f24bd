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

  /** Returns false if the device is deleted: then nothing of it must be stored. */
  const checkShadow = ({ device, propertyId, time, value }: AcknowledgedReport, when: string): boolean => {
    const shadow = Option.getOrUndefined(
      read(Effect.flatMap(Effect.service(ShadowStore), (store) => store.get(device.deviceId)))
    )
    if (shadow === undefined) return false
    const reported = shadow.reported[propertyId]
    if (reported === undefined || reported.time < time || (reported.time === time && reported.value !== value)) {
      violated(
        name,
        `${device.deviceName} has reported ${propertyId} ${value} of ${time}; its shadow has ${
          JSON.stringify(reported)
        } ${when}`
      )
    }
    return true
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
      if (checkShadow(report, "when it is acknowledged")) checkHistory(report)
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
