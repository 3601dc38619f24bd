import { suites } from "@device-cloud/testing/contracts"
import { postgres } from "../../../vitest.storages.ts"

suites("PostgreSQL", postgres)
