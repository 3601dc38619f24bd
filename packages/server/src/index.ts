/**
 * The reference server of Device Cloud.
 *
 * - `run`: the server as a whole process, with signals and workers.
 * - `Server.layer`: the server inside a program of yours.
 * - `ServerConfig.fromEnv`: its configuration, from the variables of docs/operations.
 * - `ServerProcess.start`: the server in a process of its own, for tests.
 */
export { run } from "./Run.ts"
export * as Server from "./Server.ts"
export { type EnvironmentVariables, InvalidConfig, ServerConfig } from "./ServerConfig.ts"
export * as ServerProcess from "./ServerProcess.ts"
