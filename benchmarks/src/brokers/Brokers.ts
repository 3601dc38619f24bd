/**
 * MQTT brokers that a user would install: Debian's mosquitto, and RabbitMQ with its
 * plug-in for MQTT. They store nothing and know no devices. Their limits on messages
 * under way are lifted, for the load stays below what they were made for; everything
 * else is as installed.
 */
import { type ChildProcess, spawn } from "node:child_process"
import { mkdir, writeFile } from "node:fs/promises"
import { existsSync } from "node:fs"
import { type AddressInfo, connect, createServer } from "node:net"
import { join } from "node:path"
import { setTimeout } from "node:timers/promises"
import type { LoadDevice } from "../Load.ts"
import { withDirectory } from "../Processes.ts"

/** A broker that runs, or why it does not. */
export type Broker = { readonly name: string } & ({ readonly port: number; readonly pid: number } | NotInstalled)

export interface NotInstalled {
  readonly leftOut: string
}

const freePort = (): Promise<number> =>
  new Promise((resolve) => {
    const server = createServer().listen(0, "127.0.0.1", () => {
      const { port } = server.address() as AddressInfo
      server.close(() => resolve(port))
    })
  })

const isListening = (port: number): Promise<boolean> =>
  new Promise((resolve) => {
    const socket = connect(port, "127.0.0.1")
    socket.once("connect", () => {
      socket.destroy()
      resolve(true)
    })
    socket.once("error", () => resolve(false))
  })

/** Runs `use` while a program runs, which ends with all that it has started. */
const withProgram = async <A>(
  command: readonly [program: string, ...args: ReadonlyArray<string>],
  env: NodeJS.ProcessEnv,
  use: (child: ChildProcess) => Promise<A>
): Promise<A> => {
  const [program, ...args] = command
  // In a process group of its own.
  const child = spawn(program, args, { env, stdio: "ignore", detached: true })
  const ended = new Promise((resolve) => child.once("exit", resolve))
  const kill = () => {
    if (child.exitCode === null && child.signalCode === null) process.kill(-child.pid!, "SIGKILL")
  }
  process.once("exit", kill)
  try {
    return await use(child)
  } finally {
    process.off("exit", kill)
    kill()
    await ended
  }
}

/** Waits until devices can connect. Fails when the program ends before. */
const listening = async (name: string, child: ChildProcess, port: number): Promise<void> => {
  while (!await isListening(port)) {
    if (child.exitCode !== null) throw new Error(`${name} has ended with ${child.exitCode}`)
    await setTimeout(50)
  }
}

type With = <A>(use: (broker: Broker) => Promise<A>) => Promise<A>

const mosquittoProgram = "/usr/sbin/mosquitto"

/** Runs `use` while mosquitto runs, if it is installed. */
export const withMosquitto: With = (use) => {
  const name = "mosquitto"
  if (!existsSync(mosquittoProgram)) return use({ name, leftOut: "mosquitto is not installed" })
  return withDirectory(async (directory) => {
    const port = await freePort()
    const file = join(directory, "mosquitto.conf")
    await writeFile(
      file,
      `listener ${port} 127.0.0.1
user root
allow_anonymous true
persistence false
max_inflight_messages 0
max_queued_messages 0
set_tcp_nodelay true
log_dest none
`
    )
    return withProgram([mosquittoProgram, "-c", file], process.env, async (child) => {
      await listening(name, child, port)
      return use({ name, port, pid: child.pid! })
    })
  })
}

/** Debian's script without the part that becomes the user of the service. */
const rabbitProgram = "/usr/lib/rabbitmq/bin/rabbitmq-server"

const withRabbit: With = (use) => {
  const name = "RabbitMQ"
  if (!existsSync(rabbitProgram)) return use({ name, leftOut: "rabbitmq-server is not installed" })
  return withDirectory(async (directory) => {
    const [amqp, port, distribution, epmd] = [await freePort(), await freePort(), await freePort(), await freePort()]
    await mkdir(join(directory, "log"))
    await writeFile(join(directory, "plugins"), "[rabbitmq_mqtt].")
    await writeFile(
      join(directory, "rabbitmq.conf"),
      `listeners.tcp.1 = 127.0.0.1:${amqp}
mqtt.listeners.tcp.1 = 127.0.0.1:${port}
mqtt.prefetch = 65535
log.console = false
log.file = false
`
    )
    const env = {
      PATH: process.env["PATH"],
      HOME: directory,
      ERL_EPMD_PORT: String(epmd),
      ERL_EPMD_ADDRESS: "127.0.0.1",
      RABBITMQ_NODENAME: `bench${epmd}@localhost`,
      RABBITMQ_DIST_PORT: String(distribution),
      RABBITMQ_MNESIA_BASE: join(directory, "mnesia"),
      RABBITMQ_LOG_BASE: join(directory, "log"),
      RABBITMQ_PID_FILE: join(directory, "pid"),
      RABBITMQ_CONFIG_FILE: join(directory, "rabbitmq"),
      RABBITMQ_ENABLED_PLUGINS_FILE: join(directory, "plugins"),
      // Waiting schedulers leave the cores to the others.
      RABBITMQ_SERVER_ADDITIONAL_ERL_ARGS: "+sbwt none +sbwtdcpu none +sbwtdio none"
    }
    // It would start one that stays behind.
    return withProgram(
      ["epmd", "-port", String(epmd), "-address", "127.0.0.1"],
      env,
      () =>
        withProgram([rabbitProgram], env, async (child) => {
          await listening(name, child, port)
          return use({ name, port, pid: child.pid! })
        })
    )
  })
}

/** Runs `use` while all brokers run that are installed. */
export const withBrokers = <A>(use: (brokers: ReadonlyArray<Broker>) => Promise<A>): Promise<A> =>
  withMosquitto((mosquitto) => withRabbit((rabbit) => use([mosquitto, rabbit])))

/** The devices by the account that every RabbitMQ has. mosquitto accepts everyone. */
export const asGuests = (devices: ReadonlyArray<LoadDevice>): ReadonlyArray<LoadDevice> =>
  devices.map((device) => ({ ...device, username: "guest", password: "guest" }))
