/**
 * Roles of access keys.
 */
import { Schema } from "effect"

/**
 * What a key may do. Each role includes the ones before it: `viewer` reads,
 * `operator` changes everything but keys, `admin` manages keys, `owner`
 * manages projects.
 */
export const Role = Schema.Literals(["viewer", "operator", "admin", "owner"])
export type Role = typeof Role.Type

/** Whether `role` allows everything that `required` allows. */
export const roleIncludes = (role: Role, required: Role): boolean =>
  Role.literals.indexOf(role) >= Role.literals.indexOf(required)
