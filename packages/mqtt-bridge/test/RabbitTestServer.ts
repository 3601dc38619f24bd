/**
 * A real RabbitMQ with the plug-ins that the bridge needs, in directories and on
 * ports of its own.
 */
import { Effect } from "effect"
import { type ChildProcess, execFile, spawn } from "node:child_process"
import { mkdtemp, readFile, rm, writeFile } from "node:fs/promises"
import { connect } from "node:net"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { promisify } from "node:util"
import { program } from "../../../vitest.installed.ts"
import { freePort } from "../../../vitest.ports.ts"

/** Debian's scripts without the part that becomes the user of the service. */
const scripts = "/usr/lib/rabbitmq/bin"

export const { isInstalled, named } = program("rabbitmq-server")

const isListening = (port: number) =>
  Effect.callback<boolean>((resume) => {
    const socket = connect(port, "127.0.0.1")
    socket.once("connect", () => {
      socket.destroy()
      resume(Effect.succeed(true))
    })
    socket.once("error", () => resume(Effect.succeed(false)))
  })

const spawned = (command: string, args: ReadonlyArray<string>, env: NodeJS.ProcessEnv) =>
  Effect.acquireRelease(
    // A group of its own: the script starts further processes.
    Effect.sync(() => spawn(command, args, { env, stdio: "ignore", detached: true })),
    (child: ChildProcess) =>
      Effect.callback<void>((resume) => {
        if (child.exitCode !== null || child.pid === undefined) return resume(Effect.void)
        child.once("exit", () => resume(Effect.void))
        process.kill(-child.pid, "SIGKILL")
      })
  )

const plugins = "[rabbitmq_mqtt,rabbitmq_auth_backend_http,rabbitmq_event_exchange,rabbitmq_consistent_hash_exchange]."

const page = await readFile(new URL("../../../docs/mqtt-bridge.md", import.meta.url), "utf8")

/** What the documentation tells to write into the files of the broker. */
const [, configuration = ""] = /```ini .*\n([^]*?)```/.exec(page)!
const [, advanced = ""] = /```erlang .*\n([^]*?)```/.exec(page)!

/**
 * Starts a broker that asks `hooks`, for example `http://127.0.0.1:9000/mqtt-bridge/{credential}`.
 * `advancedConfig`: in place of that of the documentation.
 */
export const start = Effect.fnUntraced(function*(hooks: string, advancedConfig: string = advanced) {
  const directory = yield* Effect.acquireRelease(
    Effect.promise(() => mkdtemp(join(tmpdir(), "device-cloud-rabbitmq-"))),
    (directory) => Effect.promise(() => rm(directory, { recursive: true, force: true, maxRetries: 5 }))
  )
  const [amqp, mqtt, distribution, epmd] = yield* Effect.all([freePort, freePort, freePort, freePort])
  const write = (name: string, text: string) => Effect.promise(() => writeFile(join(directory, name), text))
  yield* write("plugins", plugins)
  yield* write("advanced.config", advancedConfig)
  yield* write(
    "rabbitmq.conf",
    `
listeners.tcp.1 = 127.0.0.1:${amqp}
mqtt.listeners.tcp.1 = 127.0.0.1:${mqtt}
default_user = cloud
default_pass = secret
${configuration.replaceAll("http://server:9090/mqtt-bridge/{key}", hooks)}
log.console = false
log.file = false
`
  )
  const env = {
    PATH: process.env["PATH"],
    HOME: directory,
    ERL_EPMD_PORT: String(epmd),
    ERL_EPMD_ADDRESS: "127.0.0.1",
    RABBITMQ_NODENAME: `bridge${epmd}@localhost`,
    RABBITMQ_DIST_PORT: String(distribution),
    RABBITMQ_MNESIA_BASE: join(directory, "mnesia"),
    RABBITMQ_LOG_BASE: join(directory, "log"),
    RABBITMQ_PID_FILE: join(directory, "pid"),
    RABBITMQ_CONFIG_FILE: join(directory, "rabbitmq"),
    RABBITMQ_ADVANCED_CONFIG_FILE: join(directory, "advanced.config"),
    RABBITMQ_ENABLED_PLUGINS_FILE: join(directory, "plugins"),
    RABBITMQ_SERVER_ADDITIONAL_ERL_ARGS: "+S 1:1 +sbwt none"
  }
  yield* spawned("epmd", ["-port", String(epmd), "-address", "127.0.0.1"], env)
  yield* spawned(join(scripts, "rabbitmq-server"), [], env)
  const control = (...args: ReadonlyArray<string>) =>
    Effect.asVoid(Effect.promise(() => promisify(execFile)(join(scripts, "rabbitmqctl"), args, { env })))
  return {
    amqpUrl: `amqp://cloud:secret@127.0.0.1:${amqp}`,
    mqttUrl: `mqtt://127.0.0.1:${mqtt}`,
    /** Raises or ends the alarm of memory: the broker takes nothing from who publishes. */
    setAlarm: (isOn: boolean) => control("set_vm_memory_high_watermark", isOn ? "0" : "0.4"),
    /** Lets the servers publish, or refuses what they publish from now on. */
    mayPublish: (may: boolean) => control("set_permissions", "cloud", ".*", may ? ".*" : "", ".*"),
    /** Ends all connections, and says why. */
    endConnections: (reason: string) => control("close_all_connections", reason),
    /** Waits until devices can connect. */
    ready: Effect.gen(function*() {
      while (!(yield* isListening(mqtt))) yield* Effect.sleep(50)
    })
  }
})
