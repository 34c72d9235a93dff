create table experiment (name text not null, settings text not null, checksum integer not null);
create table sessions (started text not null, versions text not null, machine text not null, checksum integer not null);
create table units (key text primary key, checksum integer not null);
create table runs (
    part text, variant text, algebra text, n_hidden integer, network integer, seed integer, fields text not null,
    checksum integer not null, primary key (part, variant, algebra, n_hidden, network)
);
create table arrays (name text primary key on conflict replace, data blob not null, checksum integer not null);
