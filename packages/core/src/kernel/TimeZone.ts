/**
 * Time zones by their IANA names.
 */
import { DateTime, Option } from "effect"

/** Says what a time zone is called. */
export const expectedTimeZone = "Expected the IANA name of a time zone, such as Europe/Berlin"

/** Whether it is the IANA name of a time zone. An offset is none: it knows no summer time. */
export const isTimeZone = (name: string): boolean =>
  /^[A-Za-z]/.test(name) && Option.isSome(DateTime.zoneMakeNamed(name))
