/**
 * The whole server in a program of your own: runs it until SIGTERM or SIGINT, configured by the environment.
 */
import "effect/schema/SchemaJITCompiler/enable"
import { run } from "@device-cloud/server"

run(process.env)
