import { plural } from "./plural.ts"

/** Jobs: what many devices carry out, each for itself. */
export const jobs = {
  lead: "Something that devices carry out, each for itself: they say how far they are.",
  create: "New job",
  caption: "Jobs of the project, the newest first",
  empty: "No jobs yet",
  emptyBody:
    "Give devices a document that they understand, for example to calibrate. Firmware has campaigns of its own.",
  id: "Number",
  progress: "Progress",
  statuses: { in_progress: "in progress", completed: "completed", cancelled: "cancelled" },
  states: {
    queued: "queued",
    sent: "told",
    in_progress: "in progress",
    succeeded: "succeeded",
    failed: "failed",
    rejected: "rejected",
    timed_out: "timed out",
    cancelled: "cancelled"
  },
  for: "Devices",
  named: "named devices",
  allOf: "all devices of a product",
  document: "Document",
  documentHint: "A JSON object on which your devices agree with you",
  timeout: "Seconds for a device",
  timeoutHint: "From its first step; 0: any time",
  anyTime: "any time",
  deviceIds: "Device ids",
  deviceIdsHint: "One on each line, at most 1,000",
  reaches: (count: string) =>
    `It goes to ${plural(count, "device")}, also to those that are away: they hear of it when they come back.`,
  created: "The job has started",
  devicesCaption: "What became of each device",
  noDevices: "No device is in this state.",
  state: "State",
  anyState: "All states",
  details: "Details",
  cancel: "Cancel the job",
  cancelTitle: (name: string) => `Cancel the job “${name}”?`,
  cancelBody: (open: string, ended: string) =>
    `Devices that have not ended it (${open}) never will; they are told. It has ended on ${plural(ended, "device")}.`,
  cancelled: "The job is cancelled",
  removeTitle: (name: string) => `Delete the job “${name}”?`,
  removeBody: (count: string) => `What is known of it on ${plural(count, "device")} is gone.`
}
