/**
 * `npm start`: runs the reference server until SIGTERM or SIGINT.
 */
import "effect/schema/SchemaJITCompiler/enable"
import { run } from "@device-cloud/server"

run(process.env)
