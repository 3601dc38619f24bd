/**
 * All commands of `device-cloud`.
 */
import { Effect } from "effect"
import type { HttpClient } from "effect/http"
import { Argument, CliConfig, type CliError, Command, GlobalFlag } from "effect/cli"
import type { CommandFailure } from "./CommandFailure.ts"
import { globalFlags } from "./GlobalFlags.ts"
import { read } from "./Operation.ts"
import * as OperationCommand from "./OperationCommand.ts"
import { exportCommand } from "./DeviceExport.ts"
import { importCommand } from "./DeviceImport.ts"
import { doctorCommand } from "./DoctorCommand.ts"
import { firmwareCommands } from "./FirmwareCommands.ts"
import { initCommand } from "./InitCommand.ts"
import { modelChangeCommands, typesCommand } from "./ModelChangeCommands.ts"
import { modelCommands } from "./ModelCommands.ts"
import { resources } from "./Resources.ts"
import { serveCommand } from "./ServeCommand.ts"
import { simulateCommand } from "./SimulateCommand.ts"
import { watchCommand } from "./WatchCommand.ts"

const name = "device-cloud"

/** Commands of resources that are more than one call. */
const ofResources: Readonly<Record<string, ReadonlyArray<Command.Command.Any>>> = {
  devices: [importCommand, exportCommand],
  firmware: firmwareCommands,
  models: [...modelCommands, ...modelChangeCommands]
}

const completionCommand = Command.make(
  "completion",
  { shell: Argument.Literals("shell", ["bash", "zsh", "fish"]) },
  ({ shell }) => runWith([GlobalFlag.Completions], [`--completions=${shell}`], "")
).pipe(
  Command.withDescription("Print a script that completes commands. For bash: source <(device-cloud completion bash)"),
  Command.withShortDescription("Print a script that completes commands")
)

type AnyCommand = Command.Command<string, never, {}, CommandFailure, Command.Environment | HttpClient.HttpClient>

/** Makes the commands. Those of a kind of thing that `args` do not name have no commands of their own. */
const make = (args: ReadonlyArray<string>, version: string): AnyCommand => {
  const derived = Object.entries(resources).map(([resource, { commands, summary }]) => {
    const command = Command.make(resource).pipe(Command.withDescription(summary))
    if (!args.includes(resource) && !args.some((arg) => arg.startsWith("--completions"))) return command
    const specs = Object.entries(commands).map(([name, spec]) =>
      [name, typeof spec === "string" ? { operation: spec } : spec] as const
    )
    const operations = read(specs.map(([, { operation }]) => operation))
    return command.pipe(
      Command.withSubcommands([
        ...specs.map(([name, spec]) => OperationCommand.make(name, spec, operations)),
        ...ofResources[resource] ?? []
      ] as never)
    )
  })
  return Command.make(name).pipe(
    Command.withDescription("Manages products, devices and all that belongs to them on a Device Cloud server."),
    Command.withSubcommands([
      {
        group: "Start",
        commands: [
          initCommand,
          serveCommand,
          doctorCommand(version),
          watchCommand,
          simulateCommand,
          typesCommand,
          completionCommand
        ]
      },
      { group: "Manage", commands: derived as never }
    ]),
    Command.withGlobalFlags(globalFlags)
  ) as unknown as AnyCommand
}

/** Runs the command line with those arguments. Fails with a `CommandFailure` or a `CliError`. */
export const run = (args: ReadonlyArray<string>, version: string) =>
  runWith([GlobalFlag.Help, GlobalFlag.Version], args, version)

const runWith = (
  builtIns: ReadonlyArray<GlobalFlag.BuiltIn>,
  args: ReadonlyArray<string>,
  version: string
): Effect.Effect<void, CliError.CliError | CommandFailure, Command.Environment | HttpClient.HttpClient> =>
  Effect.suspend(() => Command.runWith(make(args, version), { version })(args)).pipe(
    Effect.provide(CliConfig.layer({ builtIns }))
  )
