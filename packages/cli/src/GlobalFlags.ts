/**
 * The flags that every command has.
 */
import { Flag, GlobalFlag } from "effect/cli"

/** `--url`: the server. */
export const Url = GlobalFlag.Setting("url")({
  flag: Flag.String("url").pipe(Flag.withDescription("The server, such as http://127.0.0.1:8080"), Flag.optional)
})

/** `--key`: the access key. */
export const Key = GlobalFlag.Setting("key")({
  flag: Flag.Redacted("key").pipe(
    Flag.withDescription("The access key; others see it in the list of processes, so prefer DEVICE_CLOUD_KEY"),
    Flag.withMetavar("key"),
    Flag.optional
  )
})

/** `--profile`: which server of the configuration file. */
export const Profile = GlobalFlag.Setting("profile")({
  flag: Flag.String("profile").pipe(Flag.withDescription("A profile of the configuration file"), Flag.optional)
})

/** `--json`: JSON in place of text. */
export const Json = GlobalFlag.Setting("json")({
  flag: Flag.Boolean("json").pipe(Flag.withDescription("Print JSON"), Flag.withDefault(false))
})

/** `--show-secret`: secrets as they are. */
export const ShowSecret = GlobalFlag.Setting("show-secret")({
  flag: Flag.Boolean("show-secret").pipe(
    Flag.withDescription("Print secrets and keys as they are"),
    Flag.withDefault(false)
  )
})

/** All of them. */
export const globalFlags = [Url, Key, Profile, Json, ShowSecret] as const

/** What a command reads of them. */
export type GlobalFlags = (typeof globalFlags)[number]["Identifier"]
