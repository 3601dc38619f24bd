/**
 * Preloaded into a node of a drill: its clock is wrong by the first of the
 * milliseconds in `CLOCK_OFFSETS`, and by the next one after each SIGUSR2.
 */
const offsets = (process.env["CLOCK_OFFSETS"] ?? "0").split(",").map(Number)
let offset = offsets.shift()!
process.on("SIGUSR2", () => {
  offset = offsets.shift() ?? offset
})

const RightDate = Date
const now = () => RightDate.now() + offset

globalThis.Date = class extends RightDate {
  constructor(...args: [] | ConstructorParameters<typeof Date>) {
    if (args.length === 0) super(now())
    else super(...args)
  }
  static override now = now
} as DateConstructor

const origin = performance.timeOrigin + offset
Object.defineProperty(performance, "timeOrigin", { get: () => origin })
