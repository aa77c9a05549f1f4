-- Two roles of least privilege for Weald's tables in PostgreSQL:
--   weald_reader   answers every question (status, clusters, assign, Grafana) and can write nothing
--   weald_writer   what `weald run`, `weald worker` and `weald dlq` need; it cannot change the tables
-- Neither can log in. Give them to whom can:
--   CREATE ROLE grafana LOGIN PASSWORD '...' IN ROLE weald_reader;
-- Run this as the owner of the tables, who is the role that runs `weald db upgrade`:
--   weald db roles | psql DATABASE
-- It may be run again, and covers tables that later upgrades of the same owner bring.

DO $$
DECLARE
    name text;
BEGIN
    FOREACH name IN ARRAY ARRAY['weald_reader', 'weald_writer'] LOOP
        IF NOT EXISTS (SELECT FROM pg_roles WHERE rolname = name) THEN
            EXECUTE format('CREATE ROLE %I NOLOGIN', name);
        END IF;
        EXECUTE format('GRANT CONNECT ON DATABASE %I TO %I', current_database(), name);
    END LOOP;
END
$$;

REVOKE CREATE ON SCHEMA public FROM PUBLIC;
GRANT USAGE ON SCHEMA public TO weald_reader, weald_writer;

GRANT SELECT ON ALL TABLES IN SCHEMA public TO weald_reader;
GRANT SELECT, INSERT, UPDATE, DELETE ON ALL TABLES IN SCHEMA public TO weald_writer;
GRANT USAGE ON ALL SEQUENCES IN SCHEMA public TO weald_writer;
REVOKE INSERT, UPDATE, DELETE ON alembic_version FROM weald_writer;

ALTER DEFAULT PRIVILEGES IN SCHEMA public GRANT SELECT ON TABLES TO weald_reader;
ALTER DEFAULT PRIVILEGES IN SCHEMA public
    GRANT SELECT, INSERT, UPDATE, DELETE ON TABLES TO weald_writer;
ALTER DEFAULT PRIVILEGES IN SCHEMA public GRANT USAGE ON SEQUENCES TO weald_writer;
