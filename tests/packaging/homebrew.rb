# The part of Homebrew's formula language that our formula uses. `brew` itself would install the formula only on a Mac.
#
#   ruby homebrew.rb show|install|test lmwire.rb ROOT PYTHON WHEEL
#
# ROOT becomes Homebrew's prefix. PYTHON runs in place of the Python of the formula's dependency. `show` writes the formula
# as JSON. Ruby itself refuses words and arguments that are not defined here. What they do and refuse follows the files
# formula.rb, service.rb, formula_assertions.rb and language/python.rb of Homebrew. https://docs.brew.sh/Formula-Cookbook
# The syntax is that of Ruby 2.6, which macOS has.

require "fileutils"
require "forwardable"
require "json"
require "pathname"

DEPENDENCIES = [/\Apython@3\.\d+\z/, { arch: :arm64 }] + %i[sonoma sequoia tahoe].map { |release| { macos: release } }
PROCESS_TYPES = %i[background standard interactive adaptive]

class Pathname
  def install_symlink(*sources)
    mkpath
    FileUtils.ln_s(sources.flatten, self)
  end
end

module Language
  module Python
    module Virtualenv
      def virtualenv_create(folder, python, system_site_packages: true, without_pip: true)
        raise ArgumentError, "Homebrew refuses without_pip since Python 3.12" unless without_pip
        system python, "-m", "venv", *("--system-site-packages" if system_site_packages), "--without-pip", folder
      end
    end
  end
end

class Service
  extend Forwardable
  def_delegators :@formula, :opt_bin, :var
  attr_reader :stanzas

  def initialize(formula, &block)
    @formula = formula
    @stanzas = {}
    instance_eval(&block)
  end

  def run(command)
    @stanzas[:run] = command.map(&:to_s)
  end

  def keep_alive(successful_exit:)
    @stanzas[:KeepAlive] = { SuccessfulExit: successful_exit }
  end

  def process_type(type)
    raise ArgumentError, "#{type} is no process type" unless PROCESS_TYPES.include?(type)
    @stanzas[:ProcessType] = type.to_s.capitalize
  end

  def stop_timeout(seconds)
    @stanzas[:ExitTimeOut] = Integer(seconds)
  end

  def log_path(path)
    @stanzas[:StandardOutPath] = path.to_s
  end

  def error_log_path(path)
    @stanzas[:StandardErrorPath] = path.to_s
  end
end

class Formula
  class << self
    %i[desc homepage sha256 license].each { |word| define_method(word) { |text| stanzas[word] = text } }

    def stanzas
      @stanzas ||= { depends_on: [] }
    end

    def url(url, using:)
      raise ArgumentError, "Homebrew unpacks a wheel" unless using == :nounzip
      stanzas[:url] = url
    end

    def depends_on(dependency)
      raise ArgumentError, "unknown: #{dependency}" unless DEPENDENCIES.any? { |known| known === dependency }
      stanzas[:depends_on] << dependency
    end

    def preserve_rpath
      # Linux has no install names.
    end

    def service(&block)
      define_method(:service) { Service.new(self, &block) }
    end

    def test(&block)
      define_method(:test, &block)
    end
  end

  attr_reader :root, :stanzas, :name, :version, :prefix

  def initialize(root)
    @root = Pathname(root)
    @stanzas = self.class.stanzas
    @name = self.class.name.downcase
    @version = stanzas[:url][%r{github\.com/.+/releases/download/v?(\d+(?:\.\d+)+)/}, 1]
    @prefix = @root/"Cellar"/name/version
  end

  { buildpath: "build", testpath: "test", var: "var" }.each { |word, path| define_method(word) { root/path } }
  { libexec: "libexec", bin: "bin", man1: "share/man/man1" }.each { |word, path| define_method(word) { prefix/path } }

  def opt_prefix
    root/"opt"/name
  end

  def opt_bin
    opt_prefix/"bin"
  end

  def system(*command)
    Kernel.system(*command.map(&:to_s), out: :err, exception: true)
  end

  def output_of(*command)
    output = IO.popen(*command, &:read)
    $?.success? ? output : raise("#{command.last} failed: #{$?}")
  end

  def generate_completions_from_executable(*command)
    base = File.basename(command.first)
    { bash: "etc/bash_completion.d/#{base}", zsh: "share/zsh/site-functions/_#{base}",
      fish: "share/fish/vendor_completions.d/#{base}.fish" }.each do |shell, path|
      (prefix/path).dirname.mkpath
      (prefix/path).write(output_of({ "SHELL" => shell.to_s }, [*command, shell].map(&:to_s)))
    end
  end

  alias shell_output output_of

  def assert_match(expected, actual)
    pattern = expected.is_a?(String) ? Regexp.new(Regexp.escape(expected)) : expected
    raise "#{actual.inspect} does not match #{pattern.inspect}" unless pattern.match?(actual)
  end

  # Homebrew's PATH has the programs of the dependencies. The libraries that the tests add are not for pip.
  def add_programs(python)
    programs = (root/"programs").tap(&:mkpath)
    stanzas[:depends_on].grep(String).each do |dependency|
      program = programs/dependency.delete("@")
      program.write(%(#!/bin/sh\nexec env -u PYTHONPATH "#{python}" "$@"\n))
      program.chmod(0o755)
    end
    ENV["PATH"] = "#{programs}:/usr/bin:/bin"
  end

  def enter(folder)
    folder.mkpath
    ENV["HOME"] = folder.to_s
    Dir.chdir(folder) { yield }
  end
end

phase, path, root, python, wheel = ARGV
load path
formula = Object.const_get(File.basename(path, ".rb").capitalize).new(root)
case phase
when "show"
  puts formula.stanzas.merge(version: formula.version, service: formula.service.stanzas).to_json
when "install"
  formula.add_programs(python)
  formula.enter(formula.buildpath) do
    FileUtils.cp(wheel, File.basename(formula.stanzas[:url]))
    formula.install
  end
  formula.opt_prefix.dirname.mkpath
  formula.opt_prefix.make_symlink(formula.prefix)
when "test"
  formula.enter(formula.testpath) { formula.test }
end
