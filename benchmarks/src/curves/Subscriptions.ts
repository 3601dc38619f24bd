/**
 * `subscriptions`: what subscriptions of the feed cost reports that do not concern them.
 */
import { useOfCore } from "./Cost.ts"
import type { Curve } from "./Curve.ts"
import { costly, reporters, reporting, type RunningCloud } from "./Reporting.ts"

const idleMillis = 8000

const call = async ({ http }: RunningCloud, method: string, path: string, body: unknown): Promise<void> => {
  const response = await fetch(`${http.url}/openapi/v1${path}`, {
    method,
    headers: { authorization: `Bearer ${http.accessKey}`, "content-type": "application/json" },
    body: JSON.stringify(body)
  })
  if (response.status !== 200) throw new Error(`${method} ${path}: ${response.status} ${await response.text()}`)
}

export const subscriptions: Curve = {
  name: "subscriptions",
  title: "Subscriptions of the feed",
  text:
    "Each subscription waits for events of one device, which does not report, to push them to a webhook; all are of " +
    "the project whose devices report. PostgreSQL.",
  axis: "subscriptions",
  points: [1, 10, 100, 1000],
  panels: [
    { figure: "server", title: "Server, µs for a report" },
    { figure: "database", title: "PostgreSQL, µs for a report" },
    { figure: "idleServer", title: "Server without reports, ms of a core a second" },
    { figure: "idleDatabase", title: "PostgreSQL without reports, ms of a core a second" }
  ],
  cloud: reporting({
    cloud: (point) => ({ plan: { devices: reporters + point }, isDurable: true }),
    prepare: async (cloud, point) => {
      await call(cloud, "PUT", "/projects/default/quotas", { subscriptions: point })
      for (const [i, { deviceId }] of cloud.devices.slice(reporters).entries()) {
        await call(cloud, "POST", "/subscriptions", {
          name: `Subscription ${i}`,
          filter: { device_ids: [deviceId] },
          webhook: { url: "https://receiver.invalid/" }
        })
      }
      const idle = await useOfCore(costly(cloud), idleMillis)
      return () => Promise.resolve(idle)
    }
  })
}
