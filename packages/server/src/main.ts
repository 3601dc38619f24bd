#!/usr/bin/env -S node --max-semi-space-size=64 --no-allocation-site-pretenuring
/**
 * `device-cloud-server`: runs the server with the environment of this process.
 * Each worker of a server runs this file, too.
 */
import "effect/schema/SchemaJITCompiler/enable"
import { run } from "./Run.ts"

run(process.env)
